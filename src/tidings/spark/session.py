"""Spark sessions set up for this pipeline: RocksDB state, quiet logs, the same Python everywhere."""

from __future__ import annotations

import logging
import os
import re
import signal
import sys
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from py4j.protocol import Py4JError
from pyspark import SparkContext
from pyspark.sql import SparkSession

from tidings.model.errors import RunError
from tidings.signals import aside
from tidings.spark.java import java_home
from tidings.spark.java_process import JavaProcess

_ATTEMPTS = 4
_ENDING_SECONDS = 2.0
"""How long a Java that does not answer may take to be seen to have ended."""
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


_java: JavaProcess | None = None
"""Serves all sessions of this process, one after the other."""


def _nothing(step: str) -> None:
    pass


@contextmanager
def spark_session(
    name: str,
    master: str = "local[*]",
    log: Path | None = None,
    config: Mapping[str, str] | None = None,
    *,
    starts_workers: bool = False,
    on_step: Callable[[str], object] = _nothing,
) -> Iterator[SparkSession]:
    """A session, stopped at the end unless there was one before. What Java and workers say goes to `log` (None: nowhere).

    `starts_workers`: Python workers are there, with all they need loaded, when the session is handed out. on_step: called
    with what is begun. RunError if Java ends meanwhile. Whoever is interrupted (KeyboardInterrupt) leaves no Java behind.
    """
    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    settings = {"spark.app.name": name, "spark.master": _with_retries(master), **_settings(master, config or {})}
    log = log or Path(os.devnull)
    session: SparkSession | None = None
    # What PySpark and py4j log when Java is gone: with the traces of the threads that notice.
    said = logging.FileHandler(log, delay=True)
    logging.getLogger().addHandler(said)
    java = None
    try:
        java = _java_for(settings, log, on_step)
        on_step("starting Spark")
        session = _made(settings)
        if starts_workers:
            on_step("starting Python workers")
            _start_workers(session)
        yield session
    except KeyboardInterrupt:
        if java is not None:
            java.kill()
            session = None
        raise
    except (Py4JError, OSError) as error:
        ending = java and java.ending(_ENDING_SECONDS)
        if not ending:
            raise
        session = None
        raise RunError(
            f"Java, in which Spark runs, {ending} ({log} may say why); give the same command again to go on"
        ) from error
    finally:
        if session is not None:
            session.stop()
        logging.getLogger().removeHandler(said)
        said.close()


def _settings(master: str, config: Mapping[str, str]) -> dict[str, str]:
    """All settings of Spark. Sets what Java and workers must find in the environment."""
    os.environ["JAVA_HOME"] = str(java_home())
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ["PYSPARK_DRIVER_PYTHON"] = sys.executable
    quiet = Path(__file__).with_name("log4j2.properties")
    options = f"{_JAVA_OPTIONS} -Dlog4j2.configurationFile={quiet.as_uri()}"
    settings = {**_CONFIG, "spark.driver.extraJavaOptions": options, **config}
    if master.startswith("local"):
        # Nobody else on the network has to reach what runs on this machine alone.
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
        settings = {**_LOCAL, **settings}
        settings.setdefault("spark.sql.shuffle.partitions", str(local_cores(master)))
    return settings


def _java_for(settings: Mapping[str, str], log: Path, on_step: Callable[[str], object]) -> JavaProcess | None:
    """The Java of this process, started if need be; None if somebody else has started it (spark-submit)."""
    global _java
    if SparkContext._gateway is None and "PYSPARK_GATEWAY_PORT" not in os.environ:
        on_step("starting Java")
        _java = JavaProcess(settings, log)
    return _java


def _made(settings: Mapping[str, str]) -> SparkSession:
    """A new session. PySpark then has a handler of SIGINT, which cancels all jobs: the one before is put back."""
    builder = SparkSession.builder
    for key, value in settings.items():
        builder = builder.config(key, value)
    before = signal.getsignal(signal.SIGINT)
    try:
        session = builder.getOrCreate()
    finally:
        if threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, before)
    session.sparkContext._accumulatorServer.handle_error = _accumulators_failed
    return session


def _accumulators_failed(*_: object) -> None:
    """Says why a connection to PySpark's accumulators failed, without a trace. That Java hung up is no failure."""
    error = sys.exc_info()[1]
    if not isinstance(error, (EOFError, ConnectionError)):
        logging.warning("Spark's accumulators: %r", error)


def _start_workers(spark: SparkSession) -> None:
    """Starts Python workers; meanwhile Java plans a first query, which takes as long."""
    slots = spark.sparkContext.defaultParallelism
    planned = aside(spark.range(0, slots, 1, slots).mapInArrow(_same, "id long").collect)
    spark.sparkContext.parallelize(range(slots), slots).mapPartitions(_same).collect()
    planned.result()


def _same(values: Iterator[Any]) -> Iterator[Any]:
    return values


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
