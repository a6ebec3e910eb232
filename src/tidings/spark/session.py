"""Spark sessions set up for this pipeline: RocksDB state, quiet logs, the same Python everywhere."""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from tidings.spark.java import java_home

_ATTEMPTS = 4
_STREAMING = "org.apache.spark.sql.execution.streaming"
LIVE_SETTINGS = {
    # The state store that stages with state in Python need.
    "spark.sql.streaming.stateStore.providerClass": f"{_STREAMING}.state.RocksDBStateStoreProvider",
    # Every attempt at a micro-batch writes state under names of its own, so that attempts never mix.
    "spark.sql.streaming.stateStore.checkpointFormatVersion": "2",
    # Batches between Java and Python stay far below the 2 GiB that Arrow's columns may have.
    "spark.sql.execution.arrow.maxBytesPerBatch": str(64 * 2**20),
}
"""Settings that a session must have for queries with state; they can be set while it runs."""
_CONFIG = {
    **LIVE_SETTINGS,
    "spark.ui.enabled": "false",
    "spark.ui.showConsoleProgress": "false",
    "spark.driver.memory": "4g",
    "spark.driver.maxResultSize": "0",
    "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled": "true",
    # Outside of Java's heap: for all state stores of an executor together.
    "spark.sql.streaming.stateStore.rocksdb.boundedMemoryUsage": "true",
    "spark.sql.streaming.stateStore.rocksdb.maxMemoryUsageMB": "256",
    "spark.sql.execution.arrow.maxRecordsPerBatch": "10000",
    "spark.sql.adaptive.enabled": "false",
    "spark.sql.streaming.metricsEnabled": "false",
    "spark.python.worker.reuse": "true",
    "spark.python.daemon.module": "tidings.spark.daemon",
    # Spark keeps workers apart by their environment, of which this is a part for some kinds of tasks only.
    "spark.sql.execution.pyspark.udf.simplifiedTraceback.enabled": "false",
}

_LOCAL = {
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    # Plain renames: a fifth to a third off each batch on local disks.
    "spark.sql.streaming.checkpointFileManagerClass": f"{_STREAMING}.checkpointing.FileSystemBasedCheckpointFileManager",
}

# Java plans and moves a few large rows; the work is done in Python. The optimising compiler would cost more than it gains:
# it takes two fifths of Java's processor time in the first minutes. Nor are classes verified, which come from Spark's own jars:
# a tenth of the time to the first query.
_JAVA_OPTIONS = (
    "-XX:+UseParallelGC -XX:TieredStopAtLevel=1 -XX:MaxNewSize=512m"
    " -XX:+IgnoreUnrecognizedVMOptions -XX:+UnlockDiagnosticVMOptions -XX:-BytecodeVerificationRemote"
)


@contextmanager
def spark_session(
    name: str,
    master: str = "local[*]",
    log: Path | None = None,
    config: Mapping[str, str] | None = None,
    *,
    starts_workers: bool = False,
) -> Iterator[SparkSession]:
    """A session, stopped at the end unless there was one before. What Java and workers say goes to `log` (None: nowhere).

    `starts_workers`: Python workers are there, with all they need loaded, when the session is handed out.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    quiet = Path(__file__).with_name("log4j2.properties")
    settings = {
        **_CONFIG,
        "spark.driver.extraJavaOptions": f"{_JAVA_OPTIONS} -Dlog4j2.configurationFile={quiet.as_uri()}",
        **(config or {}),
    }
    if master.startswith("local"):
        # Nobody else on the network has to reach what runs on this machine alone.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {**_LOCAL, **settings}
        settings.setdefault("spark.sql.shuffle.partitions", str(local_cores(master)))
    builder = SparkSession.builder.appName(name).master(_with_retries(master))
    for key, value in settings.items():
        builder = builder.config(key, value)
    with _stderr_to(log or Path(os.devnull)):
        session = builder.getOrCreate()
    try:
        if starts_workers:
            _start_workers(session)
        yield session
    finally:
        session.stop()


def _start_workers(spark: SparkSession) -> None:
    """Starts Python workers; meanwhile Java plans a first query, which takes as long."""
    slots = spark.sparkContext.defaultParallelism
    with ThreadPoolExecutor(1) as aside:
        planned = aside.submit(spark.range(0, slots, 1, slots).mapInArrow(_same, "id long").collect)
        spark.sparkContext.parallelize(range(slots), slots).mapPartitions(_same).collect()
        planned.result()


def _same(values: Iterator[Any]) -> Iterator[Any]:
    return values


@contextmanager
def _stderr_to(log: Path) -> Iterator[None]:
    """Lets processes started meanwhile (Java, and through it the workers) inherit a file as their stderr."""
    sys.stderr.flush()
    kept = os.dup(2)
    with log.open("ab") as target:
        os.dup2(target.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _with_retries(master: str) -> str:
    """A local master that tries a failed task again, as clusters do: else a worker that dies ends the job."""
    plain = re.fullmatch(r"local(?:\[(\*|\d+)\])?", master)
    return master if plain is None else f"local[{plain[1] or 1},{_ATTEMPTS}]"


def local_cores(master: str) -> int:
    """The cores that a local master uses."""
    inside = master.removeprefix("local").strip("[]").split(",")[0]
    if inside == "*":
        return os.cpu_count() or 2
    return int(inside) if inside.isdigit() else 1


def default_shards(spark: SparkSession) -> int:
    """How many shards a stage has by default: as many as there are cores, of the machine or of the executors."""
    return int(spark.sparkContext.defaultParallelism)
