"""More than one executor: killed executors, tasks tried again and speculative ones change not a byte of the output."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pyspark
import pytest

from live_run import LINES, Live, expected, is_worker, kill_below
from tidings.pipeline.warm import STEPS
from tidings.spark.java import java_home
from tidings.terminal import compile_kernels

pytestmark = [pytest.mark.spark, pytest.mark.extended]

SETTINGS = {
    # A second attempt at every task that is not done at once.
    "spark.speculation": "true",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.01",
    "spark.speculation.quantile": "0.1",
    "spark.speculation.minTaskRuntime": "0ms",
    "spark.task.maxFailures": "20",
    "spark.executor.memory": "1g",
    "spark.driver.memory": "1g",
}
OPTIONS = [word for name, value in SETTINGS.items() for word in ("--conf", f"{name}={value}")]


def disturb(live: Live, killed: int, is_victim: Callable[[bytes], bool]) -> None:
    """Runs, while processes below the process `killed` (0: the run itself) are killed within a micro-batch."""
    live.put_changes()
    run = live.start(*OPTIONS, "--shards", "3")
    live.wait_for(run, LINES)
    live.put_changes()
    assert kill_below(killed or run.pid, is_victim) > 0
    put = live.put_changes()
    live.wait_for(run, put)
    live.stop(run)
    assert live.told() == expected(3)


def is_executor(command: bytes) -> bool:
    return b"CoarseGrainedExecutorBackend" in command


def test_a_local_cluster_whose_workers_and_executors_are_killed(tmp_path: Path) -> None:
    compile_kernels(STEPS)
    with Live(tmp_path, "local-cluster[2,1,2048]") as live:
        disturb(live, 0, lambda command: is_worker(command) or is_executor(command))


def test_a_standalone_master_with_two_workers_whose_executors_are_killed(tmp_path: Path) -> None:
    compile_kernels(STEPS)
    (tmp_path / "run").mkdir()
    with standalone(tmp_path) as master, Live(tmp_path / "run", master) as live:
        disturb(live, os.getpid(), is_executor)


@contextmanager
def standalone(folder: Path) -> Iterator[str]:
    """A master and two workers of one core each on loopback. Gives the master's address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = str(probe.getsockname()[1])
    master = f"spark://127.0.0.1:{port}"
    program = str(Path(pyspark.__file__).parent / "bin" / "spark-class")
    environment = {**os.environ, "JAVA_HOME": str(java_home()), "SPARK_LOCAL_IP": "127.0.0.1"}
    words = [["master.Master", "--port", port]]
    words += [["worker.Worker", "--cores", "1", "--memory", "1g", "--work-dir", str(folder / "work"), master]] * 2
    started = []
    try:
        for name, *options in words:
            command = [program, f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--webui-port", "0", *options]
            log = (folder / f"{name}.log").open("ab")
            started.append(subprocess.Popen(command, env=environment, stdout=log, stderr=log))
            log.close()
        yield master
    finally:
        for process in reversed(started):
            process.terminate()
            process.wait()
