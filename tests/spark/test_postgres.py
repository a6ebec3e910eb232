"""PostgreSQL as a source: every committed change comes once, in order, and again the same after a crash."""

from __future__ import annotations

import datetime as dt
import io
import json
import random
import struct
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import psycopg
import pytest

from in_process import tidings
from live_job import LiveJob
from postgres_server import Database
from tidings.bench.postgres import dsn, find_server, running
from tidings.model.change import Op
from tidings.model.errors import UsageError
from tidings.model.quarantine import Quarantined
from tidings.pipeline.ingest import Ingest
from tidings.pipeline.warm import STEPS
from tidings.sinks.parts import PartsSink
from tidings.sources.postgres import pgoutput, snapshot
from tidings.sources.postgres import slot as slots
from tidings.sources.postgres.pgoutput import UNCHANGED
from tidings.sources.postgres.position import Position
from tidings.sources.postgres.reader import ChangeStream, Row, begin
from tidings.sources.postgres.records import Followed, RowWriter
from tidings.sources.postgres.server import connect, explained
from tidings.sources.postgres.settings import Settings, lsn_of, lsn_text
from tidings.sources.postgres.values import INT4, render_of
from tidings.spark.envelope import ANSWERS
from tidings.sql import parse_catalog
from tidings.terminal import compile_kernels

CATALOG = "CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE);"
TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, kind text, x float8)"


def settings_of(database: Database, tmp_path: Path, **more: Any) -> Settings:
    """Slots are of a whole server: each database has one of its own name."""
    return Settings(database.dsn, more.pop("catalog", CATALOG), tmp_path / "spool", slot=database.name, **more)


class Follower:
    """Reads a stream as Spark does, and keeps tables by its records, none of which may contradict them, if it has all rows."""

    def __init__(self, settings: Settings, tables: dict[str, dict[Any, dict[str, Any]]] | None = None) -> None:
        self.settings = settings
        self.stream = ChangeStream(settings)
        self.position = self.stream.first()
        self.tables = {} if tables is None else tables
        self.has_all = settings.start == "earliest"
        self.rows: list[Row] = []

    def batch(self, max_rows: int = 10_000) -> list[Row]:
        """Reads, keeps and commits one micro-batch."""
        end = self.stream.latest(self.position, max_rows)
        rows = [row for part in self.stream.parts(self.position, end) for row in self.stream.rows(part)]
        if end != self.position:
            self.stream.commit(end)
            self.position = end
        self.rows += rows
        for row in rows:
            self.keep(json.loads(row.value))
        return rows

    def drain(self, max_rows: int = 10_000) -> list[dict[str, Any]]:
        """All records up to now."""
        found: list[Row] = []
        before = None
        while before != self.position:
            before = self.position
            found += self.batch(max_rows)
        return [json.loads(row.value) for row in found]

    def keep(self, record: dict[str, Any]) -> None:
        assert ("tx" in record) != ("snapshot" in record)
        if record.get("snapshot") == "last":
            return
        table = self.tables.setdefault(record["table"], {})
        if record["op"] == "truncate":
            table.clear()
            return
        id, row = record["row"]["id"], record["row"]
        if record["op"] == "d":
            del table[id]
            return
        if "keep" in record:
            before = table.pop(record["old"]["id"]) if "old" in record else table[id]
            row = {**row, **{name: before[name] for name in record["keep"]}}
        assert not self.has_all or ((id in table) == (record["op"] == "u" and "old" not in record))
        assert (record["op"] == "r") == (record.get("snapshot") == "true")
        table[id] = row

    def close(self) -> None:
        self.stream.close()


def ops(records: list[dict[str, Any]]) -> list[tuple[str, Any]]:
    """Op and id of each record; the end of a snapshot is left out."""
    return [(record["op"], record.get("row", {}).get("id")) for record in records if record.get("snapshot") != "last"]


# Messages, without a server.


def text(value: str) -> bytes:
    return b"t" + struct.pack(">i", len(value.encode())) + value.encode()


def tuple_of(*values: bytes) -> bytes:
    return struct.pack(">h", len(values)) + b"".join(values)


def test_messages_are_decoded() -> None:
    relation = b"R" + struct.pack(">i", 7) + b"public\0t\0d" + struct.pack(">h", 2)
    relation += b"\1id\0" + struct.pack(">Ii", 20, -1) + b"\0body\0" + struct.pack(">Ii", 25, -1)
    found = pgoutput.decode(relation)
    assert found == pgoutput.Relation(7, "public", "t", (("id", 20), ("body", 25)))
    oid = struct.pack(">i", 7)
    assert pgoutput.decode(b"I" + oid + b"N" + tuple_of(text("1"), b"n")) == (7, ("1", None))
    changed = b"U" + oid + b"K" + tuple_of(text("1"), b"n") + b"N" + tuple_of(text("2"), b"u")
    assert pgoutput.decode(changed) == (7, ("1", None), ("2", UNCHANGED))
    assert pgoutput.decode(b"U" + oid + b"N" + tuple_of(text("2"), text("ä"))) == (7, None, ("2", "ä"))
    assert pgoutput.decode(b"D" + oid + b"K" + tuple_of(text("1"), b"n")) == (7, ("1", None))
    assert pgoutput.decode(b"T" + struct.pack(">iB", 2, 1) + oid + struct.pack(">i", 8)) == ((7, 8),)
    assert pgoutput.decode(b"B" + struct.pack(">QqI", 5, 0, 99)) == (99,)
    commit = b"C" + struct.pack(">BQQq", 0, 5, 6, 1_500_000)
    assert pgoutput.decode(commit) == (6, dt.datetime(2000, 1, 1, 0, 0, 1, 500_000, tzinfo=dt.UTC))
    assert pgoutput.decode(b"Y" + oid + b"public\0mood\0") is None


@pytest.mark.parametrize(
    ("type", "given", "expected"),
    [
        (23, "-5", "-5"),
        (701, "0.1", "0.1"),
        (701, "1e+300", "1e+300"),
        (1700, "12.50", "12.5"),
        (1700, "NaN", '"NaN"'),
        (701, "-Infinity", '"-Infinity"'),
        (1700, "1" * 400, '"' + "1" * 400 + '"'),
        (16, "t", "true"),
        (16, "f", "false"),
        (17, "\\x00ff", '"AP8="'),
        (1114, "2026-01-31 10:00:00.5", '"2026-01-31T10:00:00.500000"'),
        (1184, "2026-01-31 10:00:00+00", '"2026-01-31T10:00:00"'),
        (1114, "infinity", '"infinity"'),
        (1082, "0044-03-15 BC", '"0044-03-15 BC"'),
        (25, 'a"b\n', '"a\\"b\\n"'),
        (2950, "x-y", '"x-y"'),
    ],
)
def test_values_become_json(type: int, given: str, expected: str) -> None:
    assert render_of(type)(given) == expected


def test_what_an_update_did_not_send_is_filled_or_kept() -> None:
    writer = RowWriter(Followed("s", "t", "t", ("id", "body"), ("id",)), [("id", INT4), ("more", 25), ("body", 25)])

    def written(old: pgoutput.Tuple | None, new: pgoutput.Tuple) -> list[dict[str, Any]]:
        return [json.loads(record) for record in writer.update(old, new)]

    head = {"table": "t", "op": "u"}
    assert written(None, ("1", "x", "y")) == [{**head, "row": {"id": 1, "body": "y"}}]
    assert written(("1", None, "old"), ("1", "x", UNCHANGED)) == [{**head, "row": {"id": 1, "body": "old"}}]
    assert written(None, ("1", UNCHANGED, UNCHANGED)) == [{**head, "row": {"id": 1}, "keep": ["body"]}]
    assert written(("1", None, None), ("2", "x", UNCHANGED)) == [
        {**head, "row": {"id": 2}, "keep": ["body"], "old": {"id": 1}}
    ]
    assert [record["op"] for record in written(("1", None, None), ("2", "x", "y"))] == ["d", "c"]


# The stream, without Spark.


@pytest.fixture
def follow(database: Database, tmp_path: Path) -> Iterator[Any]:
    opened: list[Follower] = []

    def start(*statements: str, **more: Any) -> Follower:
        database.run(*statements)
        opened.append(Follower(settings_of(database, tmp_path, **more)))
        return opened[-1]

    yield start
    for each in opened:
        each.close()


def test_a_snapshot_then_changes_in_whole_transactions(
    database: Database, follow: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(snapshot, "_PROGRESS_SECONDS", 0.0)
    found = follow(TABLE, "INSERT INTO t SELECT i, 'a', i FROM generate_series(1, 12000) i")
    assert "loading: 12,000 rows of t" in capsys.readouterr().err
    with database.session() as session:
        for number in range(3):
            with session.transaction():
                session.execute(f"INSERT INTO t SELECT i, 'b', i FROM generate_series(2{number}0001, 2{number}0004) i")
        session.execute("BEGIN; DELETE FROM t; ROLLBACK")
        session.execute("BEGIN; SAVEPOINT a; DELETE FROM t; ROLLBACK TO a; DELETE FROM t WHERE id = 1; COMMIT")
    sizes = []
    while rows := found.batch(6_000):
        sizes.append(len(rows))
    assert sizes == [5_000, 5_000, 2_001, 13]
    assert len(found.tables["t"]) == 12_011
    orders = [(row.lsn, row.number) for row in found.rows]
    assert orders == sorted(set(orders))
    database.run(
        "UPDATE t SET x = x + 1 WHERE id <= 100", *(f"UPDATE t SET x = 0 WHERE id = {id}" for id in range(2, 12))
    )
    sizes = []
    while rows := found.batch(3):
        sizes.append(len(rows))
    assert sizes == [99, 3, 3, 3, 1]
    assert {(id, row["x"]) for id, row in found.tables["t"].items()} == set(database.rows("SELECT id, x FROM t"))


def test_records_say_their_transaction_and_where_the_first_rows_end(database: Database, follow: Any) -> None:
    catalog = f"{CATALOG} CREATE TABLE u (id BIGINT PRIMARY KEY);"
    found = follow(
        TABLE, "INSERT INTO t VALUES (7, 'a', 'NaN')", "CREATE TABLE u (id bigint PRIMARY KEY)", catalog=catalog
    )
    with database.session() as session, session.transaction():
        (xid,) = session.execute("SELECT pg_current_xact_id()::text").fetchone()
        session.execute("INSERT INTO u VALUES (1); DELETE FROM t; TRUNCATE u")
    database.run("INSERT INTO t VALUES (8, 'a', 1)")
    first, end, *changes, last = found.drain()
    assert (first["op"], first["snapshot"], end) == ("r", "true", {"op": "r", "snapshot": "last"})
    assert [record["tx"] for record in changes] == [xid] * 3 and last["tx"] != xid


def test_what_is_not_committed_comes_again_the_same(database: Database, follow: Any, tmp_path: Path) -> None:
    found = follow(TABLE, "INSERT INTO t VALUES (1, 'a', 1)")
    first = ChangeStream(found.settings)
    start = first.first()
    middle = first.latest(start, 100)
    database.run("INSERT INTO t VALUES (2, 'a', 1)", "UPDATE t SET x = 7 WHERE id = 1")
    end = first.latest(middle, 100)
    database.run("ALTER TABLE t ADD COLUMN more int", "UPDATE t SET more = 1", "INSERT INTO t VALUES (3, 'b', 1, 2)")
    last = first.latest(end, 100)
    spans = [(start, middle), (middle, end), (end, last)]

    def read(stream: ChangeStream) -> list[list[Row]]:
        return [[row for part in stream.parts(a, b) for row in stream.rows(part)] for a, b in spans]

    wanted = read(first)
    assert [len(rows) for rows in wanted] == [2, 2, 3]
    first.close()
    again = ChangeStream(found.settings)
    assert again.first() == start
    assert read(again) == wanted
    again.commit(middle)
    again.commit(end)
    spans = spans[2:]
    assert read(again) == wanted[2:]
    with pytest.raises(UsageError, match="somebody else has read from it"):
        again.latest(middle, 100)
    with pytest.raises(UsageError, match="its checkpoint is not there"):
        again.first()
    assert Position.of(json.loads(json.dumps(start.as_json()))) == start
    assert not list((tmp_path / "spool").glob("snapshot-*"))
    again.close()


def test_no_gap_and_no_double_between_snapshot_and_changes(database: Database, follow: Any) -> None:
    """Writers insert, update, change keys, delete and roll back while the slot is made and the snapshot is taken."""
    database.run(TABLE, "INSERT INTO t SELECT i, 'a', 0 FROM generate_series(0, 400) i")
    over = threading.Event()

    def write(seed: int) -> None:
        choose = random.Random(seed)
        with database.session() as session:
            while not over.is_set():
                with (
                    suppress(psycopg.errors.UniqueViolation, psycopg.errors.DeadlockDetected),
                    session.transaction() as open,
                ):
                    for _ in range(choose.randrange(1, 5)):
                        id, other = choose.randrange(500), choose.randrange(500)
                        op = choose.choice(
                            [
                                f"INSERT INTO t VALUES ({id}, 'b', {other}) ON CONFLICT (id) DO UPDATE SET x = {other}",
                                f"UPDATE t SET x = {other} WHERE id = {id}",
                                f"UPDATE t SET id = {other} WHERE id = {id}",
                                f"DELETE FROM t WHERE id = {id}",
                            ]
                        )
                        session.execute(op)
                    if choose.random() < 0.2:
                        raise psycopg.Rollback(open)

    writers = [threading.Thread(target=write, args=(seed,)) for seed in range(3)]
    for writer in writers:
        writer.start()
    try:
        found = follow()
        for _ in range(20):
            found.batch(200)
    finally:
        over.set()
        for writer in writers:
            writer.join()
    found.drain(500)
    rows = [(row["id"], row["kind"], row["x"]) for row in found.tables["t"].values()]
    assert sorted(rows) == database.rows("SELECT id, kind, x FROM t ORDER BY id")
    assert len(found.rows) > 401


def test_a_slot_that_is_there_already_gives_nothing_twice(database: Database, follow: Any, tmp_path: Path) -> None:
    """As after a crash while the snapshot was written: the slot is older than the snapshot, and files are left over."""
    (tmp_path / "spool").mkdir()
    (tmp_path / "spool" / "snapshot-0-000000.jsonl").write_text("half a rec")
    (tmp_path / "spool" / "slot").write_text(database.name)
    database.run(TABLE, "CREATE PUBLICATION tidings FOR TABLE t")
    database.run(f"SELECT pg_create_logical_replication_slot('{database.name}', 'pgoutput')")
    with database.session() as open:
        open.execute("BEGIN")
        open.execute("INSERT INTO t VALUES (1, 'a', 1)")
        database.run("INSERT INTO t VALUES (2, 'a', 1)", "UPDATE t SET x = 2 WHERE id = 2")
        found = follow()
        open.execute("COMMIT")
    database.run("UPDATE t SET x = 3")
    first, second, *rest = ops(found.drain())
    assert [first, second, *sorted(rest)] == [("r", 2), ("c", 1), ("u", 1), ("u", 2)]
    assert found.position.snapshot == ""


def test_a_slot_of_another_run_is_left_alone(database: Database, follow: Any) -> None:
    database.run(TABLE, f"SELECT pg_create_logical_replication_slot('{database.name}', 'pgoutput')")
    with pytest.raises(UsageError, match="is there already, maybe of another run"):
        follow()


def test_a_table_that_the_catalog_got_later_must_be_published(database: Database, follow: Any) -> None:
    more = "CREATE TABLE later (id bigint PRIMARY KEY)"
    follow(TABLE)
    catalog = "CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE); CREATE TABLE later (id BIGINT PRIMARY KEY);"
    with pytest.raises(UsageError, match=r"does not have public\.later"):
        follow(more, catalog=catalog)
    database.run("ALTER PUBLICATION tidings ADD TABLE later", "INSERT INTO later VALUES (1)")
    assert ("c", 1) in ops(follow(catalog=catalog).drain())


def test_micro_batches_are_bounded_in_bytes(database: Database, follow: Any) -> None:
    found = follow(TABLE, max_bytes=50_000)
    database.run(*(f"INSERT INTO t VALUES ({id}, repeat('x', 20000), 1)" for id in range(5)))
    sizes = []
    while rows := found.batch():
        sizes.append(len(rows))
    assert sizes == [2, 2, 1]


def test_a_session_that_breaks_is_opened_again(database: Database, follow: Any) -> None:
    found = follow(TABLE)
    found.drain()
    database.run("INSERT INTO t VALUES (1, 'a', 1)")
    end = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'tidings'"
    database.run(f"{end} AND datname = '{database.name}'")
    assert ops(found.drain()) == [("c", 1)]


def test_keys_truncates_and_large_values(database: Database, follow: Any) -> None:
    catalog = "CREATE TABLE t (id BIGINT PRIMARY KEY, n INT, body TEXT); CREATE TABLE f (id INT PRIMARY KEY, n INT, body TEXT);"
    tables = [
        f"CREATE TABLE {name} (id int PRIMARY KEY, n int, body text); ALTER TABLE {name} ALTER body SET STORAGE EXTERNAL"
        for name in ("t", "f")
    ]
    found = follow(*tables, "ALTER TABLE f REPLICA IDENTITY FULL", catalog=catalog)
    for name in ("t", "f"):
        database.run(
            f"INSERT INTO {name} SELECT i, 0, repeat(i::text, 5000) FROM generate_series(1, 3) i",
            f"UPDATE {name} SET n = 1 WHERE id = 1",
            f"UPDATE {name} SET id = 9 WHERE id = 2",
            f"UPDATE {name} SET body = 'short' WHERE id = 3",
        )
    records = found.drain()
    assert [record.get("keep") for record in records if "keep" in record] == [["body"], ["body"]]
    kept, moved = (record for record in records if "keep" in record)
    assert kept["row"] == {"id": 1, "n": 1} and moved["old"] == {"id": 2}
    expected = {1: (1, "1" * 5000), 9: (0, "2" * 5000), 3: (0, "short")}
    for name in ("t", "f"):
        assert {id: (row["n"], row["body"]) for id, row in found.tables[name].items()} == expected
    assert ops([record for record in records if record["table"] == "f"])[3:6] == [
        ("u", 1),
        ("d", 2),
        ("c", 9),
    ]
    database.run("TRUNCATE t, f", "INSERT INTO t VALUES (1, 1, '')")
    assert sorted(ops(found.drain()), key=str) == [("c", 1), ("truncate", None), ("truncate", None)]


def test_types_are_read_alike_in_snapshot_and_changes(database: Database, follow: Any) -> None:
    catalog = (
        "CREATE TABLE v (id INT PRIMARY KEY, a BIGINT, b DOUBLE, c DOUBLE, d DOUBLE, e TEXT, f TEXT, g TEXT, h BOOLEAN,"
        " i DATE, j TIMESTAMP, k TIMESTAMP, l BINARY, m TEXT);"
    )
    values = (
        "9007199254740993, 0.1, 1.5, 12.500, E'a\\n\"ß', '8f14e45f-ceea-467f-a8d1-2f1b1c5d0f00', '{\"k\": [1]}', true,"
        " '2026-02-28', '2026-01-31 10:00:00.25', '2026-01-31 10:00:00+02', '\\x00ff10', 'sad', 5"
    )
    columns = (
        "id int2 PRIMARY KEY, a int8, b float8, c float4, d numeric, e varchar(9), f uuid, g jsonb, h bool, i date,"
        " j timestamp, k timestamptz, l bytea, m mood, extra int"
    )
    found = follow(
        "CREATE TYPE mood AS ENUM ('sad', 'ok')",
        f"CREATE TABLE v ({columns})",
        f"INSERT INTO v VALUES (1, {values})",
        "INSERT INTO v VALUES (2)",
        f"ALTER DATABASE {database.name} SET TimeZone = 'Asia/Tokyo'",
        f"ALTER DATABASE {database.name} SET DateStyle = 'German'",
        catalog=catalog,
    )
    database.run(
        f"INSERT INTO v VALUES (3, {values})",
        "INSERT INTO v VALUES (4)",
        "UPDATE v SET d = 'NaN', i = 'infinity' WHERE id = 4",
    )
    found.drain()
    lines = [row.value.encode() for row in found.rows if '"last"' not in row.value]
    read = Ingest(parse_catalog(catalog), needs_seq=False, is_live=True)
    first, second, third, fourth = (read.decode(line)[3][1:] for line in lines[:4])
    assert first == third and second == fourth == (None,) * 13
    assert first[:3] == (9007199254740993, 0.1, 1.5) and first[4:7] == (
        'a\n"ß',
        "8f14e45f-ceea-467f-a8d1-2f1b1c5d0f00",
        '{"k": [1]}',
    )
    assert first[9:11] == (dt.datetime(2026, 1, 31, 10, 0, 0, 250_000), dt.datetime(2026, 1, 31, 8))
    assert first[11] == b"\x00\xff\x10"
    refused: list[Quarantined] = []
    (withdrawal,) = (read.read(line, 0, refused) for line in lines[4:])
    assert withdrawal is not None and withdrawal.op is Op.DELETE
    assert len(refused) == 1 and "NaN" in refused[0].raw


def test_changes_of_the_schema_stop_nothing(database: Database, follow: Any) -> None:
    found = follow(TABLE)
    found.batch()
    database.run(
        "INSERT INTO t VALUES (1, 'a', 1)",
        "ALTER TABLE t ADD COLUMN more int DEFAULT 5",
        "INSERT INTO t VALUES (2, 'a', 1, 6)",
        "ALTER TABLE t ALTER COLUMN x TYPE text",
        "INSERT INTO t VALUES (3, 'a', 'far')",
        "ALTER TABLE t DROP COLUMN x",
        "INSERT INTO t VALUES (4, 'a')",
        "ALTER TABLE t ADD COLUMN x float8",
        "INSERT INTO t VALUES (5, 'a', 1, 2)",
    )
    found.drain()
    ingest, refused = Ingest(parse_catalog(CATALOG), needs_seq=False, is_live=True), list[Quarantined]()
    records = [ingest.read(row.value.encode(), 0, refused) for row in found.rows]
    ops = [record.op for record in records if record is not None]
    assert ops == [Op.UPSERT, Op.UPSERT, Op.DELETE, Op.DELETE, Op.UPSERT]
    assert [entry.reason for entry in refused] == [
        "withdrawn: row of table 't': Expected `float | null`, got `str` - at `x`",
        "withdrawn: row of table 't': lacks `x`",
    ]
    found.close()
    again = ChangeStream(found.settings)
    database.run("INSERT INTO t VALUES (6, 'a', 1, 2)")
    assert again.latest(found.position, 10) != found.position
    again.close()


def test_without_a_snapshot(database: Database, tmp_path: Path) -> None:
    database.run(TABLE, "INSERT INTO t VALUES (1, 'a', 1)")
    found = Follower(settings_of(database, tmp_path, start="latest"))
    database.run("UPDATE t SET x = 2", "INSERT INTO t VALUES (2, 'a', 1)")
    assert ops(found.drain()) == [("u", 1), ("c", 2)]
    stands = lsn_text(found.position.lsn)
    found.close()
    database.run("DELETE FROM t WHERE id = 2", "INSERT INTO t VALUES (3, 'a', 1)")
    rest = Follower(replace(found.settings, spool=tmp_path / "other", start=stands), {"t": {1: {}, 2: {}}})
    assert ops(rest.drain()) == [("d", 2), ("c", 3)]
    rest.close()
    with pytest.raises(UsageError, match=r"cannot be read: the slot .* begins at"):
        begin(replace(found.settings, spool=tmp_path / "third", start="0/1"))
    assert lsn_of(stands) == rest.position.lsn or lsn_of(stands) < rest.position.lsn


def test_the_log_of_other_tables_is_given_up(database: Database, follow: Any) -> None:
    found = follow(TABLE, "CREATE TABLE other (id int, body text)")
    assert found.drain() == [], "without rows there is no snapshot that could end"
    before = found.position
    database.run("INSERT INTO other SELECT i, repeat(md5(i::text), 50) FROM generate_series(1, 15000) i")
    assert found.drain() == []
    assert found.position.lsn - before.lsn > 16 * 2**20
    with connect(database.dsn) as session:
        assert slots.find(session, database.name) == (database.name, found.position.lsn)
    database.run("INSERT INTO t VALUES (1, 'a', 1)")
    assert ops(found.drain()) == [("c", 1)]


@pytest.mark.parametrize(
    ("statements", "more", "said"),
    [
        ([], {}, "no table public.t; say where it is"),
        (["CREATE TABLE t (id bigint PRIMARY KEY, x float8)"], {}, "has no column 'kind', which the catalog has"),
        (
            ["CREATE TABLE t (id bigint PRIMARY KEY, kind text, x text)"],
            {},
            "'x' of public.t is text, which cannot be DOUBLE",
        ),
        (
            ["CREATE TABLE t (id bigint, kind text, x float8)"],
            {},
            "nothing says that (id), its key in the catalog, is unique",
        ),
        ([TABLE, "ALTER TABLE t REPLICA IDENTITY NOTHING"], {}, "ALTER TABLE public.t REPLICA IDENTITY FULL"),
        ([TABLE, "CREATE PUBLICATION tidings"], {}, "ALTER PUBLICATION tidings"),
        ([TABLE, "CREATE PUBLICATION tidings FOR TABLE t WHERE (id > 5)"], {}, "leaves out rows that are not (id > 5)"),
        ([TABLE, "CREATE PUBLICATION tidings FOR TABLE t WITH (publish = 'insert')"], {}, "leaves changes out"),
        ([TABLE], {"dsn": "host=localhost port=1"}, "cannot connect to PostgreSQL"),
        ([TABLE], {"tables": "u"}, "unknown table 'u'"),
        ([TABLE, "CREATE ROLE {name} LOGIN", "GRANT ALL ON t TO {name}"], {"user": True}, "REPLICATION"),
    ],
)
def test_what_is_wrong_is_said_before_the_start(
    database: Database,
    tmp_path: Path,
    statements: list[str],
    more: dict[str, Any],
    said: str,
) -> None:
    database.run(*(statement.replace("{name}", database.name) for statement in statements))
    settings = settings_of(database, tmp_path)
    if more.pop("user", False):
        database.run("CREATE PUBLICATION tidings FOR TABLE t")
        more["dsn"] = database.dsn.replace("user=postgres", f"user={database.name}")
    with pytest.raises(Exception) as caught:
        begin(replace(settings, **more))
    assert said in str(caught.value)
    assert not (tmp_path / "spool" / "start.json").exists()


def test_tables_become_a_catalog(database: Database, tmp_path: Path) -> None:
    database.run(
        "CREATE DOMAIN price AS numeric(12, 2)",
        "CREATE DOMAIN email AS varchar(80)",
        """CREATE TABLE orders (id bigint PRIMARY KEY, note email, paid price, sum numeric(9), "at" timestamptz,
           tags text[], ok bool, n smallint, twice bigint GENERATED ALWAYS AS (id * 2) STORED)""",
        'CREATE TABLE "Order" ("select" uuid, day date, raw bytea, UNIQUE (day, "select"))',
        "CREATE TABLE logs (line text)",
        "CREATE TABLE sums (total numeric PRIMARY KEY)",
        "CREATE TABLE parts (id int PRIMARY KEY) PARTITION BY RANGE (id)",
        "CREATE TABLE parts_1 PARTITION OF parts FOR VALUES FROM (1) TO (9)",
    )
    done = tidings(tmp_path, "catalog", f"postgres:{database.dsn}")
    assert done.returncode == 0, done.stderr
    assert (
        done.stdout
        == """CREATE TABLE "Order" (
    select TEXT, -- uuid
    day DATE,
    raw BINARY,
    PRIMARY KEY (day, select)
);
CREATE TABLE orders (
    id BIGINT,
    note TEXT, -- email
    sum DOUBLE, -- numeric(9,0)
    at TIMESTAMP, -- timestamp with time zone
    tags TEXT, -- text[]
    ok BOOLEAN,
    n INT, -- smallint
    PRIMARY KEY (id)
);
CREATE TABLE parts (
    id INT,
    PRIMARY KEY (id)
);
"""
    )
    assert [line.partition("left out: ")[2].split(":")[0] for line in done.stderr.splitlines()] == [
        "table logs",
        "column paid of orders",
        "column twice of orders",
        "table sums",
    ]
    one = tidings(tmp_path, "catalog", f"postgres:{database.dsn}", "--tables", "parts")
    assert one.stdout.startswith("CREATE TABLE parts")
    for words, said in (
        (["--tables", "nope"], "has no table 'nope'; it has Order, logs, orders, parts, sums"),
        (["--schema", "nope"], "schema 'nope' has no table that can be followed"),
    ):
        wrong = tidings(tmp_path, "catalog", f"postgres:{database.dsn}", *words)
        assert wrong.returncode == 2 and said in wrong.stderr
    assert "write postgres:DSN" in tidings(tmp_path, "catalog", "files:x").stderr
    # What it prints can be followed, where old rows can be told apart.
    database.run('ALTER TABLE "Order" REPLICA IDENTITY FULL')
    Follower(replace(settings_of(database, tmp_path), catalog=done.stdout)).close()


def test_a_server_without_logical_replication_is_refused(tmp_path: Path) -> None:
    programs = find_server()
    assert programs is not None
    with (
        running(programs, {"shared_buffers": "32MB"}) as folder,
        pytest.raises(UsageError, match="wal_level = logical"),
    ):
        begin(Settings(dsn(folder), CATALOG, tmp_path))


def test_a_slot_that_is_gone_or_taken_is_named(database: Database, follow: Any) -> None:
    found = follow(TABLE)
    busy = psycopg.connect(f"{database.dsn} replication=database", autocommit=True)
    command = f"START_REPLICATION SLOT {database.name} LOGICAL 0/0 (proto_version '1', publication_names 'tidings')"
    busy.pgconn.exec_(command.encode())
    with connect(database.dsn) as other, pytest.raises(psycopg.errors.ObjectInUse) as caught:
        list(slots.messages(other, database.name, "tidings", 2**62))
    assert "a slot of its own" in str(explained(caught.value))
    busy.close()
    found.drain()
    found.close()
    database.run(f"SELECT pg_drop_replication_slot('{database.name}')")
    with pytest.raises(UsageError, match="is gone from the server"):
        begin(found.settings)
    with pytest.raises(UsageError, match="is gone from the server"):
        found.stream.commit(found.position)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"spool": "s", "catalog": "c"}, "needs the option 'dsn'"),
        ({"dsn": "d", "catalog": "c"}, "needs the option 'spool'"),
        ({"dsn": "d", "catalog": "c", "spool": "s", "rows": "1"}, "has no option 'rows'"),
        ({"dsn": "d", "catalog": "c", "spool": "s", "max_rows": "0"}, "a number above 0"),
        ({"dsn": "d", "catalog": "c", "spool": "s", "start": "soon"}, "neither earliest, latest nor a position"),
    ],
)
def test_options_are_checked(options: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError, match=said):
        Settings.of(options)


@pytest.mark.parametrize("engine", ["inline", pytest.param("spark", marks=[pytest.mark.spark, pytest.mark.extended])])
def test_a_run_is_killed_and_goes_on(database: Database, tmp_path: Path, engine: str) -> None:
    """Views built from the notifications are the tables' rows, and no change was told twice or refused."""
    compile_kernels(STEPS)
    catalog = "CREATE TABLE t (id BIGINT PRIMARY KEY, x DOUBLE, body TEXT); CREATE TABLE u (id BIGINT PRIMARY KEY);"
    database.run(
        "CREATE TABLE t (id bigint PRIMARY KEY, x float8, body text)",
        "CREATE TABLE u (id bigint PRIMARY KEY)",
        "ALTER TABLE t ALTER body SET STORAGE EXTERNAL",
        "INSERT INTO t SELECT i, i, repeat(i::text, 2000) FROM generate_series(1, 40) i",
        "INSERT INTO u SELECT i FROM generate_series(1, 10) i",
    )
    queries = {"all": "SELECT * FROM t WHERE x >= -1000000", "best": "SELECT id, x FROM t WHERE x > 1e9"}
    queries |= {"u": "SELECT * FROM u WHERE id >= 0", "gone": "SELECT * FROM u"}
    database.run("CREATE TABLE subscriptions (id text PRIMARY KEY, sql text, owner text)")
    database.run(*(f"INSERT INTO subscriptions VALUES ('{id}', '{sql}', 'ann')" for id, sql in queries.items()))
    words = ["--source", f"postgres:{database.dsn}", "--source-option", f"slot={database.name}"]
    words += ["--subscriptions", f"postgres:{database.dsn}", "--subscriptions-option", f"slot={database.name}_wishes"]
    job = LiveJob(tmp_path, catalog, *words, "--sink", "files:out", engine=engine)
    job.kill_when(lambda: PartsSink(tmp_path / "out").metrics().get("changes", 0) >= 50)
    database.run("UPDATE t SET x = -x WHERE id <= 10", "UPDATE t SET id = id + 100 WHERE id <= 3")
    database.run("UPDATE subscriptions SET sql = 'SELECT id, x FROM t ORDER BY x DESC LIMIT 5' WHERE id = 'best'")
    database.run(
        "DELETE FROM subscriptions WHERE id = 'gone'", "INSERT INTO subscriptions VALUES ('bad', 'SELECT', '')"
    )
    database.run("DELETE FROM t WHERE id BETWEEN 20 AND 24", "INSERT INTO t VALUES (7000, 1e6, 'new')", "TRUNCATE u")
    database.run("INSERT INTO u VALUES (3)")
    job.finish()
    sink = PartsSink(tmp_path / "out")
    answers = job.lines(ANSWERS)
    assert [(answer["id"], answer["event"]) for answer in answers if "refused" in answer] == [("bad", "create")]
    assert ("gone", "drop") in [(answer["id"], answer["event"]) for answer in answers]
    views = told(tmp_path)
    expected = {id: (x, body) for id, x, body in database.rows("SELECT id, x, body FROM t")}
    assert {row["id"]: (row["x"], row["body"]) for row in views["all"]} == expected
    best = database.rows("SELECT id, x FROM t ORDER BY x DESC, id LIMIT 5")
    assert sorted((row["id"], row["x"]) for row in views["best"]) == sorted(best)
    assert sink.metrics()["quarantined"] == 0
    assert views["u"] == [{"id": 3}] and len(views["gone"]) == 10


def told(folder: Path) -> dict[str, list[dict[str, Any]]]:
    """Views by subscription, from all notifications; a row that is told to go must be there."""
    sink = io.BytesIO()
    PartsSink(folder / "out").copy(sink)
    views: dict[str, list[dict[str, Any]]] = {}
    for line in sink.getvalue().splitlines():
        note = json.loads(line)
        view = [] if note["snapshot"] else views[note["subscription"]]
        for change in note["changes"]:
            if change["op"] != "insert":
                view.remove(change["old"] if change["op"] == "update" else change["row"])
            if change["op"] != "delete":
                view.append(change["row"])
        views[note["subscription"]] = view
    return views
