"""Kafka through Spark's connector, with a real broker: several topics and partitions, and a job that is killed once."""

from __future__ import annotations

import json
import random
from pathlib import Path
from typing import Any

import pyspark
import pytest

from live_job import LiveJob, expected, view
from tidings.bench.live.kafka_broker import Broker, Unavailable, connector_jars
from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError
from tidings.pipeline.warm import STEPS
from tidings.spark.packages import packages
from tidings.spark.sinks.kafka import KafkaSink
from tidings.spark.sources.kafka import check
from tidings.terminal import compile_kernels

PARTITIONS = 4
CATALOG = (
    "CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE);CREATE TABLE u (id BIGINT PRIMARY KEY, y DOUBLE);"
)
QUERIES = {
    "s.1": "SELECT * FROM t WHERE x >= 20",
    "ä 2": "SELECT id FROM t WHERE kind = 'a' AND x < 30",
    "s3": "SELECT * FROM t ORDER BY x DESC LIMIT 5",
    "s4": "SELECT * FROM t JOIN u USING (id) WHERE t.x >= 10 AND u.y < 30",
}


@pytest.mark.spark
@pytest.mark.extended
def test_a_run_that_is_killed_leaves_every_view_right(tmp_path: Path) -> None:
    """Each view, rebuilt from what was told, is its query's answer over the final tables."""
    try:
        jars = connector_jars()
        broker = Broker(tmp_path, PARTITIONS)
    except Unavailable as error:
        pytest.skip(str(error))
    compile_kernels(STEPS)
    servers = f"servers={broker.servers}"
    changes = [change(number, random.Random(number)) for number in range(500)]
    with broker.running():
        broker.write("wishes", [(id, json.dumps({"id": id, "sql": sql})) for id, sql in QUERIES.items()])
        write(broker, changes[:300])
        options = [
            *("--source", "kafka:t,u", "--source-option", servers, "--source-option", "maxOffsetsPerTrigger=100"),
            *("--from", json.dumps({topic: {str(number): 0 for number in range(PARTITIONS)} for topic in "tu"})),
            *("--subscriptions", "kafka:wishes", "--subscriptions-option", servers),
            *("--sink", "kafka:told", "--sink-option", servers),
            *("--conf", f"spark.jars={','.join(map(str, jars))}"),
        ]
        job = LiveJob(tmp_path, CATALOG, *options)
        job.kill_after(2)
        broker.write("t", [("x", None), ("x", "nonsense")])
        write(broker, changes[300:])
        job.finish()
        records = list({record.id: record for record in broker.read("told.*")}.values())
    values = [json.loads(record.value) for record in records]
    [refused] = [value for value in values if "raw" in value]
    assert (refused["raw"], refused["partition"][:2]) == ("nonsense", "t-")
    assert {value["id"] for value in values if "event" in value} == set(QUERIES)
    tables = {(record["table"], record["row"]["id"]): record for record in changes}
    wanted = expected(CATALOG, QUERIES, dict.fromkeys(QUERIES, len(tables) + 1), tables.values())
    for id in QUERIES:
        told = [value for record, value in zip(records, values, strict=True) if record.key == id and "changes" in value]
        assert [value["seq"] for value in told] == sorted({value["seq"] for value in told})
        assert view(told) == view(map(json.loads, wanted[id])), id


def change(number: int, rng: random.Random) -> dict[str, Any]:
    id = rng.randrange(40)
    if rng.random() < 0.4:
        return {"table": "u", "op": "upsert", "row": {"id": id, "y": rng.randrange(50)}}
    return {"table": "t", "op": "upsert", "row": {"id": id, "kind": rng.choice("ab"), "x": rng.randrange(50)}}


def write(broker: Broker, changes: list[dict[str, Any]]) -> None:
    """A topic for each table; changes of one row go to one partition."""
    for table in "tu":
        records = [record for record in changes if record["table"] == table]
        broker.write(table, [(str(record["row"]["id"]), json.dumps(record)) for record in records])


def test_the_connector_is_fetched_unless_it_is_there() -> None:
    name = f"org.apache.spark:spark-sql-kafka-0-10_2.13:{pyspark.__version__}"
    assert packages(["files", "nats"], {}) == {}
    assert packages(["kafka", "files", "kafka"], {}) == {"spark.jars.packages": name}
    assert packages(["kafka"], {"spark.jars.packages": "a:b:1"}) == {"spark.jars.packages": f"a:b:1,{name}"}
    assert packages(["kafka"], {"spark.jars": "x/spark-sql-kafka-0-10_2.13-4.3.0.jar"}) == {}


def test_the_version_of_scala_is_that_of_sparks_jars() -> None:
    jars = (Path(pyspark.__file__).parent / "jars").glob("spark-core_*")
    assert [jar.name.split("_")[1].split("-")[0] for jar in jars] == ["2.13"]


def test_what_is_missing_is_said() -> None:
    with pytest.raises(UsageError, match="servers=HOST:PORT"):
        KafkaSink(Endpoint("kafka", "told"))
    with pytest.raises(UsageError, match="write kafka:TOPIC"):
        KafkaSink(Endpoint("kafka", "", {"servers": "127.0.0.1:9092"}))
    with pytest.raises(UsageError, match="name the topics"):
        check(Endpoint("kafka", "", {"servers": "127.0.0.1:9092"}))
