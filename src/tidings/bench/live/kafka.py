"""Kafka for the live bench: a broker of its own, and a topic with one partition or with four.

The order of one partition is the order of changes. Between several it is decided by micro-batches: no log says what an
undisturbed run would tell, and only views are compared.
"""

from __future__ import annotations

import datetime as dt
import json
import tempfile
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tidings.bench.live.kafka_broker import Broker, Unavailable, connector_jars
from tidings.bench.live.records import answers, inserts, write
from tidings.bench.live.sources import Written
from tidings.bench.live.workload import Row
from tidings.model.errors import UsageError

_TOPIC = "changes"


@contextmanager
def opened(partitions: int = 1) -> Iterator[KafkaSource]:
    with tempfile.TemporaryDirectory(prefix="tidings-live-") as folder:
        try:
            jars = connector_jars()
            broker = Broker(Path(folder), partitions=partitions)
        except Unavailable as error:
            raise UsageError(f"no Kafka for the bench: {error}") from None
        with broker.running():
            yield KafkaSource(broker, jars, is_ordered=partitions == 1)


class KafkaSource:
    def __init__(self, broker: Broker, jars: list[Path], *, is_ordered: bool) -> None:
        self._broker, self._jars, self.is_ordered = broker, jars, is_ordered

    def options(self) -> list[str]:
        words = ["--source", f"kafka:{_TOPIC}", "--source-option", f"servers={self._broker.servers}"]
        return [*words, "--conf", f"spark.jars={','.join(map(str, self._jars))}"]

    def load(self, tables: dict[str, list[Row]]) -> None:
        self._broker.write(_TOPIC, _keyed(inserts(tables)))

    def write(self, seed: int, rate: float, statements: int, is_over: threading.Event) -> int:
        with self._broker.writer(_TOPIC) as send:
            return write(seed, rate, statements, is_over, lambda records: send(_keyed(records)))

    def written(self) -> list[Written]:
        return [
            Written(record.value.encode(), dt.datetime.fromtimestamp(record.time, dt.UTC))
            for record in self._broker.read(_TOPIC)
        ]

    def answers(self, queries: Iterable[str]) -> Iterator[list[tuple[Any, ...]]]:
        return answers((each.line for each in self.written()), queries)


def _keyed(records: list[dict[str, Any]]) -> list[tuple[str, str | None]]:
    return [(f"{record['table']}/{record['row']['id']}", json.dumps(record)) for record in records]
