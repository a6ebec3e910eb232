"""A job on Spark with gateways: they tell what one engine tells, across restarts of the job, and after a folder was lost."""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from live_job import SessionJob, expected, view
from tidings.edge import open_reader
from tidings.edge.files import FolderReader
from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.pipeline.edge.gateway import Gateway
from tidings.pipeline.edge.wire import decode
from tidings.spark import run as on_spark

pytestmark = pytest.mark.spark
CATALOG = """
CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE);
CREATE TABLE kinds (kind TEXT PRIMARY KEY, weight DOUBLE);
"""
QUERIES = {
    "s1": "SELECT * FROM t WHERE x >= 10",
    "s2": "SELECT id FROM t WHERE kind = 'a' AND x < 30",
    "s3": "SELECT * FROM t ORDER BY x DESC LIMIT 3",
    "s4": "SELECT * FROM t WHERE moved(x) >= 5",
    "s5": "SELECT * FROM t JOIN kinds USING (kind) WHERE t.x >= 10 AND kinds.weight < 30",
}
PLACES = ("berlin", "paris", "rome")


def change(number: int) -> dict[str, Any]:
    if number % 3 == 0:
        return {"table": "kinds", "op": "upsert", "row": {"kind": "ab"[number % 2], "weight": number * 11.0 % 40}}
    return {"table": "t", "op": "upsert", "row": {"id": number % 7, "kind": "ab"[number % 2], "x": number * 7.0 % 40}}


class Place:
    """A gateway, and what it has told."""

    def __init__(self, feed: Endpoint, name: str) -> None:
        self.name = name
        self.reader = open_reader(feed, name)
        self.forget()

    def forget(self) -> None:
        """Loses everything; what was sent before is not read again."""
        self.gateway = Gateway()
        self.told: dict[str, list[dict[str, Any]]] = {}
        assert isinstance(self.reader, FolderReader)
        self.position: dict[str, Any] | None = getattr(self, "position", None)

    def read(self) -> None:
        for arrived in self.reader.read(self.position, 0.0):
            self.position = arrived.position
            taken = self.gateway.take(decode(arrived.data))
            for line in [] if taken is None else taken.told.lines():
                told = json.loads(line)
                self.told.setdefault(told["subscription"], []).append(told)


def put(folder: Path, name: str, records: list[dict[str, Any]]) -> None:
    folder.mkdir(exist_ok=True)
    (folder / f"{name}.part").write_text("".join(json.dumps(record) + "\n" for record in records))
    (folder / f"{name}.part").rename(folder / f"{name}.jsonl")


def test_regions_are_for_one_shard(tmp_path: Path) -> None:
    sink = Endpoint("places", f"files:{tmp_path / 'parcels'}", {"places": "berlin", "sender": "regions"})
    nothing = Endpoint("files", str(tmp_path))
    run = on_spark.Run(CATALOG, nothing, nothing, sink, tmp_path / "checkpoint", shards=2)
    with pytest.raises(UsageError, match="sender=regions is for one shard: say --shards 1"):
        on_spark.check(run)
    on_spark.check(replace(run, shards=1))


def test_gateways_of_a_job_on_spark(spark: SparkSession, tmp_path: Path) -> None:
    changes, wishes, parcels = (tmp_path / name for name in ("changes", "wishes", "parcels"))
    sink = Endpoint("places", f"files:{parcels}", {"places": ",".join(PLACES)})
    put(wishes, "1", [{"id": id, "sql": sql, "place": PLACES[n % 3]} for n, (id, sql) in enumerate(QUERIES.items())])
    put(changes, "1", [])
    job = SessionJob(tmp_path, CATALOG, Endpoint("files", str(changes)), Endpoint("files", str(wishes)), sink)
    job.finish()
    places = [Place(Endpoint("files", str(parcels)), name) for name in PLACES]
    for number in range(2):
        put(changes, f"2-{number}", [change(each) for each in range(30 * number, 30 * number + 30)])
        job.finish()
        for place in places:
            place.read()
        if number == 0:
            # The folder of a gateway is lost: what it asks for comes with the next micro-batch.
            places[0].forget()
            assert places[0].gateway.needs_base
            places[0].reader.ask([json.dumps({"place": "berlin", "resync": True}).encode()])
    wanted = expected(CATALOG, QUERIES, dict.fromkeys(QUERIES, 1), map(change, range(60)))
    told = {id: lines for place in places for id, lines in place.told.items()}
    lost = set(places[0].told)
    assert lost == {"s1", "s4"}
    for id, lines in wanted.items():
        records = [json.loads(line) for line in lines]
        assert view(told[id]) == view(records), id
        if id not in lost:
            assert Counter(json.dumps(each["changes"]) for each in told[id]) == Counter(
                json.dumps(each["changes"]) for each in records
            )
    answers = [line for path in sorted(parcels.glob("out-*.answers")) for line in path.read_text().splitlines()]
    assert {json.loads(line).get("place") for line in answers} == {*PLACES, None}
    without = Endpoint("files", str(tmp_path / "out"))
    other = SessionJob(tmp_path, CATALOG, Endpoint("files", str(changes)), Endpoint("files", str(wishes)), without)
    with pytest.raises(UsageError, match="with gateways"):
        other.finish()
