"""`tidings run` on folders: whatever ends it, started again it tells everybody exactly what an undisturbed run would.

Signals go to the whole process group, as a terminal and most supervisors send them.
"""

from __future__ import annotations

import os
import re
import signal
import time
import urllib.request
from pathlib import Path

import pytest

from live_run import CATALOG, QUERIES, Live, Process, await_end, expected, is_worker, kill_below, started_by
from tidings.bench.live.ports import free_port
from tidings.pipeline.warm import STEPS
from tidings.spark.envelope import ANSWERS, REFUSED
from tidings.terminal import compile_kernels

pytestmark = pytest.mark.spark

YEAR = 365 * 24 * 3600.0
STEPS_OF_A_START = [
    "reading the catalog",
    "starting Java",
    "starting Spark",
    "starting Python workers",
    "starting the query",
]


def test_a_job_goes_on_whatever_ended_it(tmp_path: Path) -> None:
    """Ended by SIGTERM, by the death of its Java, and by SIGINT. Files are old, new, or from the future."""
    compile_kernels(STEPS)
    with Live(tmp_path) as live:
        (tmp_path / "wishes" / "bad.jsonl").write_text('{"id": "bad", "sql": "SELECT nope FROM t"}\n')
        _is_finished_by_sigterm(live)
        # The catalog may grow between two runs, and does no harm to what was there.
        (tmp_path / "catalog.sql").write_text(f"{CATALOG}\nCREATE TABLE later (id BIGINT PRIMARY KEY);")
        _fails_without_java(live)
        live.put_changes(age=-20 * YEAR)
        run = live.start()
        live.wait_for(run, live.put_changes(age=50 * YEAR))
        _end(live, run, signal.SIGINT)
        assert live.told() == expected(live.files)
        answers = {(answer["id"], answer.get("seq")) for answer in live.lines(ANSWERS)}
        assert answers == {("bad", None), *((id, 1) for id in QUERIES)}
        assert len(live.lines(REFUSED)) == 2, "a file that is no text is refused as records"
        assert "Traceback" not in live.errors
        # What cannot go on from the checkpoint is refused before Spark starts.
        (tmp_path / "catalog.sql").write_text("CREATE TABLE t (id BIGINT PRIMARY KEY);")
        assert live.start().wait(60) == 2
        assert "the catalog does not go on from that of the checkpoint" in live.errors


def _end(live: Live, run: Process, number: signal.Signals) -> None:
    """Sends a signal to the group of a run, which ends well and leaves nothing behind."""
    below = started_by(run.pid)
    os.killpg(run.pid, number)
    assert run.wait(60) == 0, live.errors
    await_end(below)


def _is_finished_by_sigterm(live: Live) -> None:
    """The micro-batch that has begun is finished. Before that, metrics and latencies are those of the first one."""
    begun, port = time.time(), free_port()
    first = live.put_changes()
    run = live.start("--metrics", str(port))
    live.wait_for(run, first)
    assert "tidings_subscriptions 5.0" in _metrics(port, 'tidings_notifications_total{family="select"}')
    seconds = time.time() - begun
    # A micro-batch has begun, or is about to.
    live.put_changes()
    _end(live, run, signal.SIGTERM)
    assert "Error" not in live.errors
    said = [line.partition(" ")[2] for line in live.errors.splitlines()]
    assert said[:5] == STEPS_OF_A_START and said[5].startswith("waiting for changes")
    assert any(line.startswith("subscription 'bad' refused: unknown column 'nope' near 'nope'") for line in said)
    (batch,) = (line for line in said if line.startswith("batch 0: "))
    assert "6 subscription events (1 refused)" in batch
    # As measured: the changes waited for the start of Spark. The bound of a bucket might lie beyond these seconds.
    latency = re.search(r"latency p50 (\S+) s p99 (\S+) s max (\S+) s", batch)
    assert latency is not None
    p50, p99, highest = map(float, latency.groups())
    assert 0 < p50 <= p99 <= highest < seconds


def _fails_without_java(live: Live) -> None:
    """Killed within a micro-batch, or shortly before one; the job puts up with the death of its workers before that."""
    live.put_bytes(b"\xff\xfe\n\x00")
    run = live.start()
    live.wait_for(run, live.put_changes(age=30 * YEAR))
    assert kill_below(run.pid, is_worker) > 0
    live.wait_for(run, live.put_changes())
    live.put_changes()
    # Java may be starting a worker in place of one that died, which is a second Java for a moment.
    assert kill_below(run.pid, lambda command: b"org.apache.spark.deploy.SparkSubmit" in command) > 0
    assert run.wait(60) == 1, live.errors
    last = live.errors.splitlines()[-1]
    assert last.startswith(
        "failed: Java, in which Spark runs, was killed by SIGKILL (checkpoint/spark.log may say why); "
    )


def _metrics(port: int, wanted: str) -> str:
    """The page with metrics, once it has what is wanted: Spark reports a micro-batch a moment after it is done."""
    deadline = time.monotonic() + 60
    while True:
        page: str = urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read().decode()
        if wanted in page and "tidings_subscriptions" in page:
            return page
        assert time.monotonic() < deadline, page


@pytest.mark.extended
def test_a_second_signal_ends_a_job_at_once(tmp_path: Path) -> None:
    with Live(tmp_path) as live:
        run = live.start()
        live.await_words(run, "waiting for changes")
        below = started_by(run.pid)
        # Java stands still, so that nothing that has begun can be finished.
        java = next(pid for pid in below if b"java" in Path(f"/proc/{pid}/cmdline").read_bytes().split(b"\0")[0])
        os.kill(java, signal.SIGSTOP)
        os.killpg(run.pid, signal.SIGINT)
        live.await_words(run, "again to stop at once")
        os.killpg(run.pid, signal.SIGINT)
        assert run.wait(60) == 128 + signal.SIGINT, live.errors
        await_end(below)
