"""Topics of Kafka, through Spark's own connector."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.functions import col, concat_ws

from tidings.endpoint import Endpoint
from tidings.model.errors import UsageError

SERVERS = "kafka.bootstrap.servers"
_TOPICS = ("subscribe", "subscribePattern", "assign")


def read(spark: SparkSession, source: Endpoint, start: str = "") -> DataFrame:
    """start: `earliest` (the default), `latest`, or positions as Spark's option startingOffsets takes them.

    The partition of a record is its number or, where there may be several topics, `TOPIC-NUMBER`.
    """
    options = _checked(source)
    options["startingOffsets"] = start or options.get("startingOffsets", "earliest")
    is_single = "," not in options.get("subscribe", ",")
    found = spark.readStream.format("kafka").options(**options).load()
    partition = col("partition").cast("string") if is_single else concat_ws("-", "topic", "partition")
    return found.select("value", partition.alias("partition"), "offset", col("timestamp").alias("time"))


def check(source: Endpoint, start: str = "") -> None:
    _checked(source)


def _checked(source: Endpoint) -> dict[str, str]:
    """The options of the connector. UsageError unless they name topics, in one way."""
    options = options_of(source)
    if source.path:
        options["subscribe"] = source.path
    if len([name for name in _TOPICS if name in options]) != 1:
        raise UsageError(
            "name the topics of Kafka: write kafka:TOPIC or kafka:TOPIC,TOPIC, or give one of the options "
            f"{', '.join(_TOPICS)}"
        )
    return options


def options_of(endpoint: Endpoint) -> dict[str, str]:
    """The options of a source or sink; `servers` is short for Kafka's own name of it."""
    options = dict(endpoint.options)
    if "servers" in options:
        options[SERVERS] = options.pop("servers")
    if SERVERS not in options:
        raise UsageError("say where Kafka is: give the option servers=HOST:PORT")
    return options
