"""NATS JetStream as source and sink: what is read again is the same, what is sent again is stored once."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from pyspark.sql import SparkSession
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

from live_job import LiveJob, SessionJob, expected
from nats_server import NatsServer, nats_server
from tidings.bench.live.ports import free_port
from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.model.notification import NotificationBatch, change_tail, snapshot_tail
from tidings.pipeline.warm import STEPS
from tidings.sinks.messages import Message, placed, token
from tidings.sinks.messages import notifications as notification_messages
from tidings.sinks.nats import sendings
from tidings.sinks.publisher import Publisher, Sending
from tidings.sources.jetstream import Address
from tidings.sources.nats import Settings, check
from tidings.spark.sinks.nats import NatsSink, NatsWriter
from tidings.spark.sinks.nats import Settings as SinkSettings
from tidings.spark.sources.nats import NatsReader
from tidings.terminal import compile_kernels

ROWS = 25


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    with nats_server(tmp_path_factory.mktemp("nats")) as found:
        yield found


@pytest.fixture
def filled(server: NatsServer, request: pytest.FixtureRequest) -> str:
    """A stream of its own for a test, with values b"0" to b"24" on the subject NAME.a."""
    name = request.node.name.partition("[")[0]
    server.add_stream(name, f"{name}.>")
    server.publish(f"{name}.a", *(str(number).encode() for number in range(ROWS)))
    return name


def reader(server: NatsServer, stream: str, start: str = "", **options: str) -> NatsReader:
    return NatsReader(Settings.of({"servers": server.url, "stream": stream, "start": start, "timeout": "5", **options}))


def rows(source: NatsReader, start: dict[str, Any], end: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        row
        for partition in source.partitions(start, end)
        for batch in source.read(partition)
        for row in batch.to_pylist()
    ]


def test_what_is_read_again_is_the_same(server: NatsServer, filled: str) -> None:
    source = reader(server, filled)
    first = source.initialOffset()
    last = source.latestOffset(first, ReadAllAvailable())
    found = rows(source, first, last)
    assert [(row["value"], row["partition"], row["offset"]) for row in found] == [
        (str(number).encode(), filled, number + 1) for number in range(ROWS)
    ]
    assert found == sorted(found, key=lambda row: row["time"])
    server.publish(f"{filled}.a", b"more")
    assert rows(source, first, last) == found
    assert rows(reader(server, filled), first, last) == found
    assert source.latestOffset(last, ReadAllAvailable())["sequence"] == ROWS + 1
    assert source.reportLatestOffset() == {**last, "sequence": ROWS + 1}
    with server.connect() as connection:
        assert connection.stream(filled).state.consumer_count == 0
    source.stop()


def test_micro_batches_are_bounded(server: NatsServer, filled: str) -> None:
    by_rows = reader(server, filled, maxRowsPerTrigger="10")
    limit = by_rows.getDefaultReadLimit()
    assert limit == ReadMaxRows(10)
    by_rows.prepareForTriggerAvailableNow()
    server.publish(f"{filled}.a", b"late")
    assert ends(by_rows, limit) == [10, 20, 25]
    # Values have one byte up to sequence 10, then two; a message is taken in whatever its size.
    assert ends(reader(server, filled, maxBytesPerTrigger="1"), ReadMaxRows(100))[:2] == [1, 2]
    by_bytes = reader(server, filled, "9", maxBytesPerTrigger="8")
    assert ends(by_bytes, ReadMaxRows(100)) == [13, 17, 21, 25, 26]


def ends(source: NatsReader, limit: ReadMaxRows) -> list[int]:
    """Last sequences of the micro-batches until there is nothing new."""
    found = []
    offset = source.initialOffset()
    while (after := source.latestOffset(offset, limit)) != offset:
        offset = after
        found.append(offset["sequence"])
    source.stop()
    return found


def test_where_a_run_begins(server: NatsServer, filled: str) -> None:
    for start, after in (("", 0), ("earliest", 0), ("latest", ROWS), ("7", 6)):
        source = reader(server, filled, start)
        assert source.initialOffset()["sequence"] == after
        source.stop()
    with pytest.raises(UsageError, match="earliest, latest or a sequence"):
        reader(server, filled, "0")


def test_one_subject_of_many(server: NatsServer, filled: str) -> None:
    server.publish(f"{filled}.b", b"x", b"y")
    server.publish(f"{filled}.a", b"z")
    source = reader(server, filled, subject=f"{filled}.b", maxRowsPerTrigger="1")
    first = source.initialOffset()
    last = source.latestOffset(first, ReadMaxRows(1))
    assert last["sequence"] == ROWS + 1
    assert [row["value"] for row in rows(source, first, last)] == [b"x"]
    end = source.latestOffset(last, ReadMaxRows(1))
    # The message of the other subject behind it makes no micro-batch.
    assert end["sequence"] == ROWS + 2
    assert [row["value"] for row in rows(source, last, end)] == [b"y"]
    source.stop()


def test_large_messages(server: NatsServer, filled: str) -> None:
    """More in total than one request takes, and one that is larger than a request may be."""
    large = [bytes([number]) * 900_000 for number in range(12)]
    server.publish(f"{filled}.a", *large)
    source = reader(server, filled)
    first = source.initialOffset()
    found = rows(source, first, source.latestOffset(first, ReadAllAvailable()))
    assert [row["value"] for row in found[ROWS:]] == large
    source.stop()


def test_lost_messages_are_an_error(server: NatsServer, filled: str) -> None:
    source = reader(server, filled)
    first = source.initialOffset()
    last = source.latestOffset(first, ReadAllAvailable())
    with server.connect() as connection:
        connection.run(connection.context.purge_stream(filled, seq=11))
    with pytest.raises(UsageError, match="lost messages 1 to 10 before they were read"):
        source.latestOffset(first, ReadAllAvailable())
    with pytest.raises(UsageError, match="lost messages 1 to 10"):
        rows(source, first, last)
    patient = reader(server, filled, failOnDataLoss="false")
    assert patient.latestOffset(first, ReadAllAvailable()) == last
    assert [row["offset"] for row in rows(patient, first, last)] == list(range(11, ROWS + 1))
    with server.connect() as connection:
        connection.run(connection.context.delete_stream(filled))
    server.add_stream(filled, f"{filled}.>")
    with pytest.raises(UsageError, match="deleted and made anew"):
        patient.latestOffset(last, ReadAllAvailable())
    source.stop()
    patient.stop()


def told(*notifications: tuple[str, int, bool, str]) -> list[Message]:
    """Messages of (id, seq, is_snapshot, changes)."""
    ids, seq, is_snapshot, changes = zip(*notifications, strict=True)
    tails = [
        (snapshot_tail(n, []) if is_first else change_tail(n, text))
        for n, is_first, text in zip(seq, is_snapshot, changes, strict=True)
    ]
    at = np.arange(len(ids))
    return notification_messages(
        "run", NotificationBatch.of(np.array(seq), pa.array(ids), at, tails, np.array(is_snapshot))
    )


def batch(messages: list[Message]) -> pa.RecordBatch:
    columns = [pa.array(column, pa.string()) for column in zip(*messages, strict=True)]
    return pa.record_batch(columns, Message._fields)


def test_a_batch_written_twice_is_stored_once(server: NatsServer) -> None:
    writer = NatsWriter(SinkSettings.of({"servers": server.url, "prefix": "twice", "stream": "twice"}))
    NatsSink(Endpoint("nats", "twice", {"servers": server.url, "stream": "twice"})).prepare()
    ids = ["a", "b.c *>", "ß" * 300]
    changes = told(*((id, seq, False, "") for seq in range(1, 1001) for id in ids))
    answer = json.dumps({"partition": "p 1", "offset": 3, "id": "a", "event": "create", "seq": 1})
    again = json.dumps({"partition": "p 1", "offset": 3, "id": "b", "event": "create", "seq": 1})
    refused = json.dumps({"seq": 4, "reason": "r", "raw": "x" * 2_500_000, "partition": "", "offset": 2})
    messages = [
        *changes,
        *(placed("run", kind, line) for kind, line in [("answer", answer), ("answer", again), ("refused", refused)]),
    ]
    for _ in range(2):
        writer.write(iter([batch(messages[:1500]), batch(messages[1500:])]))
    for id in ids:
        stored = server.messages("twice", f"twice.notifications.{token(id)}")
        assert [message.value.decode() for message in stored] == [each.value for each in changes[ids.index(id) :: 3]]
    assert {message.value.decode() for message in server.messages("twice", "twice.answers")} == {answer, again}
    pieces = server.messages("twice", "twice.refused")
    assert len(pieces) == 3
    assert b"".join(message.value for message in pieces).decode() == refused


def test_a_server_that_starts_again(tmp_path: Path) -> None:
    """What is under way is sent again, in order and once; a reader that has a connection goes on with it."""
    port = free_port()
    messages = [Sending(f"again.{n % 5}", str(n), str(n).encode(), is_ordered=True) for n in range(3000)]
    with ThreadPoolExecutor(1) as aside:
        with nats_server(tmp_path, port=port) as server:
            server.add_stream("again", "again.>")
            publisher = Publisher(Address((server.url,), timeout=30))
            source = reader(server, "again", timeout="30")
            first = source.initialOffset()
            publisher.send(messages[:2000])
        sending = aside.submit(publisher.send, messages[2000:])
        with nats_server(tmp_path, port=port):
            sending.result()
            publisher.finish()
            publisher.close()
            found = rows(source, first, source.latestOffset(first, ReadAllAvailable()))
            source.stop()
    values = [int(row["value"]) for row in found]
    assert sorted(values) == list(range(3000))
    for part in range(5):
        assert [value for value in values if value % 5 == part] == list(range(part, 3000, 5))


def test_tokens_and_ids() -> None:
    assert token("a-b_1") == "a-b_1"
    assert token("a.b c*>~%ä") == "a%2Eb%20c%2A%3E%7E%25%C3%A4"
    assert len(token("x" * 201)) == 65
    change, snapshot, whole = told(("a/b", 7, False, ""), ('a"b', 7, True, ""), ("a", 8, False, '"0123456789"'))
    assert (change.key, change.id) == ("a/b", "run/a%2Fb/7/change")
    assert (snapshot.key, snapshot.id) == ('a"b', "run/a%22b/7/snapshot")
    assert json.loads(whole.value)["changes"] == ["0123456789"]
    parts = sendings("p", whole, 40)
    assert [part.id for part in parts] == [f"{whole.id}#{number}/{len(parts)}" for number in range(1, len(parts) + 1)]
    assert b"".join(part.value for part in parts).decode() == whole.value


def test_what_is_wrong_is_said(server: NatsServer, tmp_path: Path) -> None:
    def source(stream: str, **options: str) -> None:
        check(Endpoint("nats", stream, {"servers": server.url, **options}))

    def target(prefix: str, url: str, **options: str) -> None:
        NatsSink(Endpoint("nats", prefix, {"servers": url, "timeout": "1", **options}))

    with pytest.raises(UsageError, match=r"write nats:STREAM"):
        source("")
    with pytest.raises(UsageError, match="has no JetStream stream 'nowhere'"):
        source("nowhere")
    with pytest.raises(UsageError, match="maxRowsPerTrigger is a whole number"):
        source("nowhere", maxRowsPerTrigger="many")
    server.add_stream("queue", "queue", retention="workqueue")
    with pytest.raises(UsageError, match="removes messages as others take them"):
        source("queue")
    with pytest.raises(UsageError, match=r"no JetStream stream at .* takes the subject 'none.notifications"):
        target("none", server.url)
    with pytest.raises(UsageError, match="no subject of NATS"):
        target("a..b", server.url)
    with pytest.raises(UsageError, match=r"cannot reach NATS at nats://127.0.0.1:1 "):
        target("p", "nats://somebody:secret@127.0.0.1:1")
    config = tmp_path / "nats.conf"
    config.write_text(
        "jetstream { store_dir: '%s' }\n" % (tmp_path / "store")
        + 'authorization { users: [{user: u, password: p, permissions: {publish: ["x", "_INBOX.>"]}}] }'
    )
    with nats_server(tmp_path, "-c", str(config)) as strict:
        with pytest.raises(UsageError, match="refuses the login"):
            target("p", strict.url)
        with pytest.raises(UsageError, match="no permission"):
            target("p", strict.url, user="u", password="p")
    (tmp_path / "plain.conf").write_text("max_payload: 1MB")
    with nats_server(tmp_path, "-c", str(tmp_path / "plain.conf")) as plain, pytest.raises(UsageError, match="-js"):
        target("p", plain.url)


@pytest.mark.parametrize("module", ["sources", "sinks"])
def test_a_missing_package_is_named(module: str) -> None:
    code = f"import sys; sys.modules['nats'] = None; import tidings.spark.{module}.nats"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stderr.rstrip().endswith(
        "UsageError: NATS needs the package nats-py: pip install '.[nats]' in the clone"
    )


CATALOG = "CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE);"
QUERIES = {
    "s.1": "SELECT * FROM t WHERE x >= 10",
    "s 2": "SELECT id FROM t WHERE kind = 'a' AND x < 30",
    "s3": "SELECT * FROM t ORDER BY x DESC LIMIT 3",
    "s4": "SELECT * FROM t WHERE moved(x) >= 5",
}


def change(number: int) -> dict[str, Any]:
    return {"table": "t", "op": "upsert", "row": {"id": number % 7, "kind": "ab"[number % 2], "x": number * 7.0 % 40}}


def lines(records: Iterable[dict[str, Any]]) -> list[bytes]:
    return [json.dumps(record).encode() for record in records]


class Streams:
    """A run from NATS to NATS. Each has streams of its own; `fill` puts there what comes first and what comes later."""

    def __init__(self, server: NatsServer, name: str) -> None:
        self._server, self._name = server, name
        self.changes, self.wishes, self.live = (f"{name}-{kind}" for kind in ("changes", "wishes", "live"))
        for stream in (self.changes, self.wishes):
            server.add_stream(stream, stream)

    def fill(self, is_first: bool) -> None:
        new = range(100) if is_first else range(100, 150)
        ids = list(QUERIES)[:3] if is_first else ["s4"]
        self._server.publish(self.wishes, *lines({"id": id, "sql": QUERIES[id]} for id in ids))
        self._server.publish(self.changes, *([] if is_first else [b"nonsense"]), *lines(map(change, new)))

    def options(self) -> dict[str, tuple[str, dict[str, str]]]:
        """Of --source, --subscriptions and --sink: name and options."""
        at = {"servers": self._server.url}
        return {
            "source": (self.changes, {**at, "maxRowsPerTrigger": "60"}),
            "subscriptions": (self.wishes, at),
            "sink": (self.live, {**at, "stream": self.live}),
        }


def check_told(server: NatsServer, streams: Streams) -> None:
    """Everybody was told everything once."""

    def values(kind: str) -> list[str]:
        return [message.value.decode() for message in server.messages(streams.live, f"{streams.live}.{kind}")]

    answers = [json.loads(value) for value in values("answers")]
    born = {answer["id"]: answer["seq"] for answer in answers}
    assert len(answers) == len(QUERIES)
    assert [json.loads(value)["raw"] for value in values("refused")] == ["nonsense"]
    wanted = expected(CATALOG, QUERIES, born, map(change, range(150)))
    for id in QUERIES:
        assert values(f"notifications.{token(id)}") == wanted[id]


@pytest.mark.spark
def test_a_run_that_goes_on_tells_everything_once(server: NatsServer, tmp_path: Path, spark: SparkSession) -> None:
    """Changes and subscription events from NATS, notifications and answers to NATS; one subscription comes in between."""
    streams = Streams(server, "goes-on")
    ends = (Endpoint("nats", name, options) for name, options in streams.options().values())
    job = SessionJob(tmp_path, CATALOG, *ends)
    for is_first in (True, False):
        streams.fill(is_first)
        job.finish()
    check_told(server, streams)


@pytest.mark.parametrize("engine", ["inline", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.extended])])
def test_a_run_that_is_killed_tells_everything_once(server: NatsServer, tmp_path: Path, engine: str) -> None:
    compile_kernels(STEPS)
    streams = Streams(server, f"killed-{engine}")
    words: list[str] = []
    for option, (name, options) in streams.options().items():
        words += [f"--{option}", f"nats:{name}"]
        words += [word for key, value in options.items() for word in (f"--{option}-option", f"{key}={value}")]
    job = LiveJob(tmp_path, CATALOG, *words, engine=engine)
    streams.fill(is_first=True)
    job.kill_after(2)
    streams.fill(is_first=False)
    job.finish()
    check_told(server, streams)
