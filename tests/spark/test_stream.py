"""DataFrames in and out: a stream of changes and of subscription events through Spark, interrupted and resumed."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.errors import StreamingQueryException
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, expr, lit, struct

import tidings.spark
from tidings.engine import Engine
from tidings.model.errors import UsageError
from tidings.sql import parse_catalog

pytestmark = pytest.mark.spark

CATALOG = "CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE);"
QUERIES = {
    "s1": "SELECT * FROM t WHERE x >= 1",
    "s2": "SELECT id FROM t WHERE kind = 'a'",
    "s3": "SELECT * FROM t ORDER BY x DESC LIMIT 2",
}


def change(id: int, x: float, op: str = "upsert", **more: Any) -> str:
    return json.dumps({**more, "table": "t", "op": op, "row": {"id": id, "kind": "ab"[id % 2], "x": x}})


def wish(id: str, **more: Any) -> str:
    return json.dumps({"id": id, **more})


def frame(spark: SparkSession, lines: list[str], partitions: int = 1) -> DataFrame:
    rows = [(line, number % partitions, number) for number, line in enumerate(lines)]
    return spark.createDataFrame(rows, "value string, partition int, offset long")


def test_batch_dataframes(spark: SparkSession) -> None:
    """Events come first: they have seq 1, and the changes follow, partition by partition."""
    lines = [change(number % 5, number * 0.25) for number in range(20)]
    found = tidings.spark.notifications(
        spark,
        CATALOG,
        frame(spark, lines, 3),
        frame(spark, [wish(id, sql=sql) for id, sql in QUERIES.items()]),
    )
    ordered = [line for partition in range(3) for line in lines[partition::3]]
    told = {(row.subscription, row.seq): (row.snapshot, json.loads(row.changes)) for row in found.collect()}
    assert told == expected(ordered)
    assert (
        found.schema.simpleString()
        == "struct<subscription:string,seq:bigint,snapshot:boolean,changes:string,time:timestamp,tx:string>"
    )


def expected(ordered: list[str]) -> dict[tuple[str, int], Any]:
    """Notifications of all queries, created after seq 1, of changes with seqs from 2 on."""
    engine = Engine(parse_catalog(CATALOG))
    for id, sql in QUERIES.items():
        engine.door.create(id, sql, 0)
    numbered = [json.dumps({"seq": at, **json.loads(line)}).encode() for at, line in enumerate(ordered, 1)]
    lines = [*engine.feed(numbered).notifications.lines(), *engine.finish().notifications.lines()]
    found = map(json.loads, lines)
    return {(line["subscription"], line["seq"] + 1): (line["snapshot"], line["changes"]) for line in found}


def test_what_is_missing_is_said(spark: SparkSession) -> None:
    good = frame(spark, [])
    with pytest.raises(UsageError, match="do not say in which order they stand"):
        tidings.spark.notifications(spark, CATALOG, good.select("value"), good)
    with pytest.raises(UsageError, match="no column 'value'"):
        tidings.spark.notifications(spark, CATALOG, good, good.select("offset"))


class Files:
    """A stream from files in a folder, and the lines that came out of it."""

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self.spark, self.folder = spark, folder
        self.out: list[tuple[int, str, str]] = []
        for name in ("changes", "wishes"):
            (folder / name).mkdir()

    def put(self, name: str, number: int, lines: list[str]) -> None:
        partial = self.folder / f".{number}.partial"
        partial.write_text("\n".join(lines))
        partial.rename(self.folder / name / f"{number:05d}.jsonl")

    def run(self, catalog: str = CATALOG, shards: int = 2) -> None:
        """Takes all files that are there, and stops."""
        changes, wishes = (self._source(name) for name in ("changes", "wishes"))

        def keep(rows: DataFrame, batch: int) -> None:
            self.out += [(batch, row.kind, row.value) for row in rows.collect()]

        found = tidings.spark.outputs(self.spark, catalog, changes, wishes, shards=shards)
        writer = found.writeStream.option("checkpointLocation", str(self.folder / "checkpoint"))
        writer.foreachBatch(keep).trigger(availableNow=True).start().awaitTermination()

    def _source(self, name: str) -> DataFrame:
        reader = self.spark.readStream.format("text").option("wholetext", "true")
        return reader.load(str(self.folder / name)).select("value", col("_metadata.file_name").alias("order"))

    def values(self, kind: str) -> list[dict[str, Any]]:
        return [json.loads(value) for _, name, value in self.out if name == kind]


def test_a_stream_that_stops_and_goes_on(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path)
    files.put("wishes", 1, [wish(id, sql=sql) for id, sql in QUERIES.items()])
    # Of two files in one micro-batch the first by name counts first, however large it is.
    files.put("changes", 1, [change(number, number * 1.0, seq=number + 1) for number in range(5)])
    files.put("changes", 2, [change(1, 9.0, seq=6), "nonsense"])
    files.run()
    files.put("changes", 3, [change(2, 8.0, seq=6), change(2, 7.0, op="update", seq=7)])
    files.put("wishes", 2, [wish("s1", sql=QUERIES["s1"]), wish("s2", drop=True), wish("s4", sql="SELECT * FROM u")])
    files.run()
    files.put("changes", 4, [change(3, 6.0)])
    files.run()
    # State of format 2: attempts at a micro-batch never share a name.
    assert all("stateUniqueIds" in path.read_text() for path in (tmp_path / "checkpoint" / "commits").glob("[0-9]*"))
    answers = {(answer["id"], answer["partition"]): answer for answer in files.values("answer")}
    assert [answers[id, "00001.jsonl"]["seq"] for id in QUERIES] == [1, 1, 1]
    assert answers["s1", "00002.jsonl"]["seq"] == 1
    assert answers["s2", "00002.jsonl"]["seq"] == 8
    assert "unknown table 'u'" in answers["s4", "00002.jsonl"]["refused"]
    refused = files.values("refused")
    assert [(entry["partition"], entry["offset"]) for entry in refused] == [("00002.jsonl", 1), ("00003.jsonl", 0)]
    assert "is a duplicate" in refused[1]["reason"]
    told = files.values("notification")
    assert len({(line["subscription"], line["seq"]) for line in told}) == len(told)
    # Changes have seqs 2 to 7, then 9 and 10: events take 1 and 8.
    assert {line["seq"] for line in told if line["subscription"] == "s1"} == {1, 3, 4, 5, 6, 7, 9, 10}
    assert max(line["seq"] for line in told if line["subscription"] == "s2") <= 8


def test_columns_times_and_structs(spark: SparkSession) -> None:
    """Changes in columns, in the order of a struct of numbers; notifications with times and changes as structs."""
    data = [
        (version, row, "insert" if version == 1 else "update", row, float(version * row))
        for version in (2, 1)
        for row in (1, 2)
    ]
    changed = spark.createDataFrame(data, "version long, row int, op string, id long, x double")
    changed = changed.withColumn("at", expr("timestamp_seconds(1000 * version + row)"))
    columns = {"id": "id", "kind": lit(None).cast("string"), "x": "x"}
    order = struct(col("version"), col("row"))
    found = tidings.spark.notifications(
        spark,
        CATALOG,
        tidings.spark.rows(changed, "t", columns, op="op", order=order, time="at"),
        frame(spark, [wish("all", sql="SELECT * FROM t")]),
        as_structs=True,
    )
    told = sorted(found.select("seq", "snapshot", expr("unix_seconds(time)").alias("time"), "changes").collect())
    assert [(row.seq, row.snapshot, row.time) for row in told] == [
        (1, True, None),
        (2, False, 1001),
        (3, False, 1002),
        (4, False, 2001),
        (5, False, 2002),
    ]
    (last,) = told[-1].changes
    assert (last.op, json.loads(last.old)["x"], json.loads(last.row)) == (
        "update",
        2.0,
        {"id": 2, "kind": None, "x": 4.0},
    )


def test_a_job_goes_on_under_a_wider_catalog_and_no_other(spark: SparkSession, tmp_path: Path) -> None:
    files = Files(spark, tmp_path)
    files.put("wishes", 1, [wish("s", sql="SELECT * FROM t WHERE x > 0")])
    files.put("changes", 1, [change(1, 1.0), json.dumps({"table": "u", "op": "upsert", "row": {"id": 1}})])
    files.run()
    wider = f"{CATALOG} ALTER TABLE t ADD COLUMN y DOUBLE; CREATE TABLE u (id BIGINT PRIMARY KEY);"
    files.put(
        "changes",
        2,
        [change(1, 2.0), json.dumps({"table": "t", "op": "upsert", "row": {"id": 2, "kind": "a", "x": 3.0, "y": 4.0}})],
    )
    files.put("wishes", 2, [wish("u", sql="SELECT * FROM u"), wish("y", sql="SELECT id FROM t WHERE y > 1")])
    files.run(wider)
    # The record for `u` was refused when it came, and stays so.
    told = [(line["subscription"], line["seq"], line["changes"]) for line in files.values("notification")]
    row = {"kind": "b", "x": 2.0, "y": None}
    assert [entry for entry in told if entry[1] > 3] == [
        ("s", 4, [{"op": "update", "old": {"id": 1, **row, "x": 1.0}, "row": {"id": 1, **row}}]),
        ("s", 5, [{"op": "insert", "row": {"id": 2, "kind": "a", "x": 3.0, "y": 4.0}}]),
        ("y", 5, [{"op": "insert", "row": {"id": 2}}]),
    ]
    files.put("changes", 3, [change(1, 2.5)])
    with pytest.raises(StreamingQueryException, match="column 'y' of table 't' is gone"):
        files.run()
    with pytest.raises(StreamingQueryException, match="a job with 2 shards, this one has 3"):
        files.run(wider, shards=3)
    files.run(wider)
    assert max(line["seq"] for line in files.values("notification")) == 6
