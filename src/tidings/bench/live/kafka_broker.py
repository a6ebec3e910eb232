"""A Kafka broker on loopback: one node in KRaft mode, from jars that Maven fetches once into the user's cache.

Kafka's own console programs write and read topics, so that no Python client is needed.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import uuid
from base64 import urlsafe_b64encode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple

from tidings.bench.live.ports import await_port, free_port
from tidings.spark.java import java_home
from tidings.spark.packages import SCALA

VERSION = "4.3.1"
_CACHE = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "tidings" / "kafka"
_MAVEN_SECONDS = 600
_QUIET = "-Dorg.slf4j.simpleLogger.defaultLogLevel=error"


class Unavailable(Exception):
    """Why there are no jars."""


class Record(NamedTuple):
    """time: when it was made, in seconds since 1970."""

    time: float
    partition: int
    key: str | None
    id: str
    """The header `id`; empty if there is none."""
    value: str


class Broker:
    """A running broker. Topics are made when they are first used, with `partitions` partitions."""

    def __init__(self, folder: Path, partitions: int) -> None:
        self._jars = broker_jars()
        self._folder = folder
        self._port, controller = free_port(), free_port()
        self.servers = f"127.0.0.1:{self._port}"
        config = {
            "process.roles": "broker,controller",
            "node.id": 1,
            "controller.quorum.voters": f"1@127.0.0.1:{controller}",
            "listeners": f"PLAINTEXT://{self.servers},CONTROLLER://127.0.0.1:{controller}",
            "advertised.listeners": f"PLAINTEXT://{self.servers}",
            "controller.listener.names": "CONTROLLER",
            "log.dirs": folder / "log",
            "num.partitions": partitions,
            "offsets.topic.replication.factor": 1,
            "offsets.topic.num.partitions": 1,
            "group.initial.rebalance.delay.ms": 0,
        }
        self._config = folder / "server.properties"
        self._config.write_text("".join(f"{name}={value}\n" for name, value in config.items()))

    @contextmanager
    def running(self) -> Iterator[Broker]:
        name = urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        self._java("kafka.tools.StorageTool", "format", "-t", name, "-c", str(self._config))
        with (self._folder / "broker.log").open("ab") as log:
            words = self._words("kafka.Kafka", str(self._config))
            process = subprocess.Popen(words, stdout=log, stderr=log)
        try:
            await_port(self._port, process, 60)
            yield self
        finally:
            process.terminate()
            process.wait()

    def write(self, topic: str, records: list[tuple[str, str | None]]) -> None:
        """Appends (key, value); without a value: a tombstone."""
        with self.writer(topic) as write:
            write(records)

    @contextmanager
    def writer(self, topic: str) -> Iterator[Callable[[list[tuple[str, str | None]]], object]]:
        """A function that appends records. All are stored when the context ends."""
        settings = [
            f"--reader-property={word}" for word in ("parse.key=true", "key.separator=\t", "null.marker=<null>")
        ]
        program = self._words("org.apache.kafka.tools.ConsoleProducer", "--bootstrap-server", self.servers)
        # It waits so long for more, in milliseconds, before it sends what it has.
        words = [*program, "--topic", topic, *settings, "--timeout", "20"]
        process = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        assert process.stdin is not None
        sink = process.stdin

        def write(records: list[tuple[str, str | None]]) -> None:
            sink.write("".join(f"{key}\t{'<null>' if value is None else value}\n" for key, value in records).encode())
            sink.flush()

        try:
            yield write
        finally:
            _, said = process.communicate()
        if process.returncode != 0:
            raise RuntimeError(f"Kafka's producer failed: {said.decode()[-2000:]}")

    def read(self, topics: str, seconds: float = 3) -> list[Record]:
        """All that topics (a regular expression) have, in order within each partition; ends after some seconds of silence."""
        names = ("print.timestamp", "print.partition", "print.key", "print.headers")
        settings = [f"--formatter-property={name}=true" for name in names]
        words = ["--bootstrap-server", self.servers, "--include", topics, "--from-beginning", *settings]
        shown = self._java(
            "org.apache.kafka.tools.consumer.ConsoleConsumer", *words, "--timeout-ms", str(int(seconds * 1000))
        )
        found = []
        for line in shown.splitlines():
            time, partition, headers, key, value = line.split("\t", 4)
            made, number = int(time.partition(":")[2]) / 1000, int(partition.partition(":")[2])
            found.append(Record(made, number, None if key == "null" else key, headers.removeprefix("id:"), value))
        return found

    def _java(self, program: str, *words: str) -> str:
        done = subprocess.run(self._words(program, *words), capture_output=True, text=True, check=False)
        if done.returncode != 0:
            raise RuntimeError(f"{program} failed: {done.stderr[-2000:]}")
        return done.stdout

    def _words(self, program: str, *words: str) -> list[str]:
        java = java_home() / "bin" / "java"
        options = ["-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", _QUIET]
        return [str(java), *options, "-cp", f"{self._jars}/*", program, *words]


@cache
def broker_jars() -> Path:
    """The folder with the jars of the broker and its console programs."""
    wanted = [f"org.apache.kafka:{name}:{VERSION}" for name in ("kafka_2.13", "kafka-tools")]
    return _fetched(f"broker-{VERSION}", wanted)


@cache
def connector_jars() -> list[Path]:
    """The jars of Spark's connector: those of the installed Spark, or of an older one where the registry has no others yet."""
    import pyspark

    reasons = []
    for version, provider in (
        (pyspark.__version__, pyspark.__version__),
        ("4.2.0", "4.2.0"),
        ("4.2.0", "4.1.0-preview1"),
    ):
        connector = f"org.apache.spark:spark-sql-kafka-0-10_{SCALA}:{version}"
        tokens = f"org.apache.spark:spark-token-provider-kafka-0-10_{SCALA}:{provider}"
        try:
            folder = _fetched(f"connector-{version}-{provider}", [connector, tokens])
        except Unavailable as error:
            reasons.append(str(error))
            continue
        stems = {path.stem.rpartition("-")[0] for path in (Path(pyspark.__file__).parent / "jars").glob("*.jar")}
        return sorted(path for path in folder.glob("*.jar") if path.stem.rpartition("-")[0] not in stems)
    raise Unavailable("; ".join(reasons))


def _fetched(name: str, coordinates: list[str]) -> Path:
    """A folder with artifacts and all they need at run time."""
    folder = _CACHE / name
    if folder.exists():
        return folder
    maven = shutil.which("mvn")
    if maven is None:
        raise Unavailable("Maven (mvn) is not on the PATH, and the jars of Kafka are not in the cache")
    partial = folder.with_name(f".{name}.{os.getpid()}")
    partial.mkdir(parents=True)
    try:
        (partial / "pom.xml").write_text(_pom(coordinates))
        words = ["-B", "-q", "-f", str(partial / "pom.xml"), f"-Dmaven.repo.local={_CACHE / 'repository'}"]
        goal = ["dependency:copy-dependencies", "-DincludeScope=runtime", f"-DoutputDirectory={partial}"]
        try:
            done = subprocess.run(
                [maven, *words, *goal], capture_output=True, text=True, check=False, timeout=_MAVEN_SECONDS
            )
        except subprocess.TimeoutExpired:
            raise Unavailable(f"Maven did not fetch {coordinates[0]} in {_MAVEN_SECONDS} s") from None
        if done.returncode != 0:
            said = next((line for line in done.stdout.splitlines() if "ERROR" in line), done.stderr)
            raise Unavailable(f"Maven could not fetch {coordinates[0]}: {said[:500]}")
        (partial / "pom.xml").unlink()
        partial.replace(folder)
    finally:
        shutil.rmtree(partial, ignore_errors=True)
    return folder


def _pom(coordinates: list[str]) -> str:
    parts = [coordinate.split(":") for coordinate in coordinates]
    # What is named here is not looked for as a part of others: the registry may not have the version that they ask for.
    named = "".join(
        f"<exclusion><groupId>{group}</groupId><artifactId>{name}</artifactId></exclusion>" for group, name, _ in parts
    )
    wanted = "".join(
        f"<dependency><groupId>{group}</groupId><artifactId>{name}</artifactId><version>{version}</version>"
        f"<exclusions>{named}</exclusions></dependency>"
        for group, name, version in parts
    )
    head = (
        "<modelVersion>4.0.0</modelVersion><groupId>tidings</groupId><artifactId>jars</artifactId><version>1</version>"
    )
    return f'<project xmlns="http://maven.apache.org/POM/4.0.0">{head}<dependencies>{wanted}</dependencies></project>'
