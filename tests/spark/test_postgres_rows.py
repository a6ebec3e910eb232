"""Starts that are refused, schemas that change and rows that cannot be kept: what a run from PostgreSQL makes of them."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from live_job import SessionJob
from postgres_server import Database
from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.sources.postgres.reader import ChangeStream, begin, begun
from tidings.sources.postgres.settings import Settings
from tidings.spark.envelope import NOTIFICATIONS, REFUSED
from tidings.spark.run import Run, check

CATALOG = "CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE);"
TABLE = "CREATE TABLE t (id bigint PRIMARY KEY, kind text, x float8)"


def left_behind(database: Database) -> list[tuple[Any, ...]]:
    """Slots and publications of the database."""
    slots = f"SELECT slot_name::text FROM pg_replication_slots WHERE database = '{database.name}'"
    return database.rows(f"{slots} UNION ALL SELECT pubname::text FROM pg_publication")


def settings_of(database: Database, tmp_path: Path, **more: Any) -> Settings:
    return Settings(database.dsn, more.pop("catalog", CATALOG), tmp_path / "spool", slot=database.name, **more)


def test_a_start_that_fails_leaves_nothing_behind(database: Database, tmp_path: Path) -> None:
    database.run(TABLE, "INSERT INTO t VALUES (1, 'a', 1)")
    settings = settings_of(database, tmp_path)
    with pytest.raises(ValueError, match="the sink"), begun(settings):
        assert len(left_behind(database)) == 2
        raise ValueError("the sink is taken")
    assert left_behind(database) == [] and list(settings.spool.iterdir()) == []
    # The slot cannot be made: its publication goes with it.
    name = database.name
    database.run(
        f"CREATE ROLE {name} LOGIN", f"ALTER TABLE t OWNER TO {name}", f"GRANT CREATE ON DATABASE {name} TO {name}"
    )
    poor = Settings(database.dsn.replace("user=postgres", f"user={name}"), CATALOG, tmp_path / "spool", slot=name)
    with pytest.raises(UsageError, match="REPLICATION"):
        begin(poor)
    assert left_behind(database) == []
    # What was there before stays.
    database.run("CREATE PUBLICATION tidings FOR TABLE t")
    with pytest.raises(ValueError, match="again"), begun(settings):
        raise ValueError("again")
    assert left_behind(database) == [("tidings",)]
    begin(settings)
    with pytest.raises(ValueError, match="later"), begun(settings):
        raise ValueError("later")
    assert len(left_behind(database)) == 2, "a run that has begun goes on when it is started again"


def test_a_run_goes_on_when_a_column_was_dropped(database: Database, tmp_path: Path) -> None:
    database.run(TABLE)
    settings = settings_of(database, tmp_path)
    position = begin(settings)
    database.run("INSERT INTO t VALUES (1, 'a', 1)", "ALTER TABLE t DROP COLUMN x", "INSERT INTO t VALUES (2, 'a')")
    assert begin(settings) == position
    stream = ChangeStream(settings)
    end = stream.latest(position, 10)
    assert len([row for part in stream.parts(position, end) for row in stream.rows(part)]) == 2
    stream.close()
    # A publication that leaves out a column that is there is another thing.
    database.run("ALTER PUBLICATION tidings SET TABLE t (id)")
    with pytest.raises(UsageError, match="leaves out the column 'kind'"):
        begin(settings)


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"sink": Endpoint("files", "catalog.sql")}, "is a file"),
        ({"trigger": "soon"}, "--trigger is 'once' or an interval"),
        ({"start": "soon"}, "neither earliest, latest nor a position"),
        ({"start": "0/1"}, "cannot be read: the slot .* does not exist"),
        ({"source": Endpoint("postgres", "host=localhost port=1")}, "cannot connect to PostgreSQL"),
        ({"source": Endpoint("files", "nowhere")}, "there is no folder"),
        ({"subscriptions": Endpoint("files", "nowhere")}, "there is no folder"),
        ({"subscriptions": Endpoint("postgres", "{dsn}")}, "no table public.subscriptions"),
        ({"catalog_sql": "CREATE TABLE t (id BIGINT PRIMARY KEY, y DOUBLE);"}, "no column 'y', which the catalog has"),
    ],
)
def test_what_is_wrong_is_found_without_spark(
    database: Database, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, more: dict[str, Any], said: str
) -> None:
    database.run(TABLE)
    monkeypatch.chdir(tmp_path)
    for name, text in (("catalog.sql", CATALOG), ("wishes", "")):
        Path(name).write_text(text)
    source = Endpoint("postgres", database.dsn, {"slot": database.name})
    sound = Run(CATALOG, source, Endpoint("files", "wishes"), Endpoint("files", "out"), Path("checkpoint"))
    check(sound)
    if "{dsn}" in str(more):
        more = {"subscriptions": Endpoint("postgres", database.dsn)}
    with pytest.raises(UsageError, match=said):
        check(replace(sound, **more))
    assert left_behind(database) == [] and sorted(map(str, Path().iterdir())) == ["catalog.sql", "wishes"]


def test_a_refused_start_is_answered_at_once(database: Database, tmp_path: Path) -> None:
    """By the command itself: no Java is started, and nothing is made."""
    database.run(TABLE)
    java = tmp_path / "java" / "bin" / "java"
    java.parent.mkdir(parents=True)
    java.write_text(f'#!/bin/sh\ntouch "{tmp_path}/java/started"\n')
    java.chmod(0o755)
    (tmp_path / "catalog.sql").write_text(CATALOG)
    for name in ("wishes", "taken"):
        (tmp_path / name).mkdir()
    (tmp_path / "taken" / "manifest-00000000.json").write_text("{}")
    words = ["--catalog", "catalog.sql", "--source", f"postgres:{database.dsn}", "--subscriptions", "files:wishes"]
    words += ["--source-option", f"slot={database.name}", "--sink", "files:taken", "--checkpoint", "checkpoint"]
    command = [sys.executable, "-m", "tidings.cli.main", "run", *words]
    environment = {**os.environ, "JAVA_HOME": str(java.parent.parent), "PATH": str(java.parent)}
    found = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert (found.returncode, found.stderr.count("has the output of another run")) == (2, 1), found.stderr
    assert "Traceback" not in found.stderr and not (tmp_path / "checkpoint").exists()
    assert not (tmp_path / "java" / "started").exists()
    assert left_behind(database) == [] and [path.name for path in (tmp_path / "taken").iterdir()] == [
        "manifest-00000000.json"
    ]


def test_first_rows_are_no_news_and_rows_come_and_go_as_they_can_be_kept(database: Database, tmp_path: Path) -> None:
    check_first_rows(database, tmp_path, "inline")


@pytest.mark.spark
def test_first_rows_are_no_news_on_spark(database: Database, tmp_path: Path, spark: SparkSession) -> None:
    check_first_rows(database, tmp_path, "spark")


def check_first_rows(database: Database, tmp_path: Path, engine: str) -> None:
    """10,000 rows and 1,000 subscriptions are there before the first start, and before one with another checkpoint."""
    catalog = f"{CATALOG} CREATE TABLE u (id BIGINT PRIMARY KEY, note TEXT);"
    queries = {f"s{n}": f"SELECT id, x FROM t WHERE x >= {10 * n} AND x < {10 * n + 10}" for n in range(990)}
    queries |= {f"k{n}": f"SELECT id, x FROM t WHERE x >= {n} ORDER BY x LIMIT 3" for n in range(9)}
    queries["u"] = "SELECT * FROM u"
    database.run(
        TABLE,
        "CREATE TABLE u (id bigint PRIMARY KEY, note text)",
        "INSERT INTO t SELECT i, 'a', i FROM generate_series(1, 10000) i",
        "INSERT INTO t VALUES (0, 'a', 'NaN')",
        "INSERT INTO u VALUES (1, 'one'), (2, 'two')",
        "CREATE TABLE subscriptions (id text PRIMARY KEY, sql text)",
    )
    database.run(*(f"INSERT INTO subscriptions VALUES ('{id}', '{sql}')" for id, sql in queries.items()))
    job = job_of(database, tmp_path / "first", catalog, engine)
    job.finish()
    check_snapshots(database, job, queries)
    assert ["withdrawn" in str(line["reason"]) for line in job.lines(REFUSED)] == [False]

    with database.session() as session, session.transaction():
        (xid,) = session.execute("SELECT pg_current_xact_id()::text").fetchone()
        session.execute("UPDATE t SET x = 5 WHERE id = 700; UPDATE t SET x = 700.5 WHERE id = 700")
        session.execute("INSERT INTO t VALUES (20000, 'b', 3); DELETE FROM t WHERE id = 20000")
    database.run(
        "UPDATE t SET x = 'NaN' WHERE id = 705",
        "UPDATE t SET x = 706 WHERE id = 705",
        "UPDATE t SET x = 707 WHERE id = 0",
        "ALTER TABLE u DROP COLUMN note",
        "UPDATE u SET id = 3 WHERE id = 1",
        "ALTER TABLE u ADD COLUMN note text",
        "UPDATE u SET note = 'three' WHERE id = 3",
    )
    job.finish()
    notes: list[Any] = job.lines(NOTIFICATIONS)
    told = sorted((note for note in notes if not note["snapshot"]), key=lambda note: note["seq"])
    assert [(note["subscription"], note["changes"]) for note in told] == [
        ("s70", [{"op": "update", "old": {"id": 700, "x": 700.0}, "row": {"id": 700, "x": 700.5}}]),
        ("s70", [{"op": "delete", "row": {"id": 705, "x": 705.0}}]),
        ("s70", [{"op": "insert", "row": {"id": 705, "x": 706.0}}]),
        ("s70", [{"op": "insert", "row": {"id": 0, "x": 707.0}}]),
        ("u", [{"op": "delete", "row": {"id": 1, "note": "one"}}]),
        ("u", [{"op": "insert", "row": {"id": 3, "note": "three"}}]),
    ]
    assert told[0]["tx"] == xid and len({note["tx"] for note in told}) == len(told)
    reasons = [str(line["reason"]) for line in job.lines(REFUSED)][1:]
    assert len(reasons) == 2 and all(reason.startswith("withdrawn: ") for reason in reasons), reasons

    again = job_of(database, tmp_path / "again", catalog, engine)
    again.finish()
    check_snapshots(database, again, queries)


def job_of(database: Database, folder: Path, catalog: str, engine: str) -> SessionJob:
    slot = f"{database.name}_{folder.name}"
    source, subscriptions = (Endpoint("postgres", database.dsn, {"slot": name}) for name in (slot, f"{slot}_wishes"))
    return SessionJob(folder, catalog, source, subscriptions, engine=engine)


def check_snapshots(database: Database, job: SessionJob, queries: dict[str, str]) -> None:
    """Every subscription got one notification, a snapshot with the rows that PostgreSQL gives."""
    notes: list[Any] = job.lines(NOTIFICATIONS)
    assert sorted(note["subscription"] for note in notes) == sorted(queries)
    assert all(note["snapshot"] and "tx" not in note for note in notes)
    with database.session() as session:
        for note in notes:
            rows = [tuple(change["row"].values()) for change in note["changes"]]
            query = queries[note["subscription"]].replace("FROM t WHERE", "FROM t WHERE x <> 'NaN' AND")
            assert sorted(rows) == sorted(session.execute(query).fetchall())
