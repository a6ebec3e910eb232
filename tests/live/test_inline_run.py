"""`tidings run --engine inline`: whatever ends it, started again it tells everybody exactly what an undisturbed run would."""

from __future__ import annotations

import os
import resource
import signal
from pathlib import Path

import pytest

from in_process import tidings
from live_run import CATALOG, LINES, QUERIES, Live, expected
from tidings.pipeline.live import ANSWERS, REFUSED
from tidings.pipeline.warm import STEPS
from tidings.sinks.parts import PartsSink
from tidings.terminal import compile_kernels

YEAR = 365 * 24 * 3600.0
WORDS = [
    *("run", "--engine", "inline", "--catalog", "catalog.sql", "--source", "files:changes", "--subscriptions"),
    *("files:wishes", "--sink", "files:out", "--checkpoint", "checkpoint"),
]


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    compile_kernels(STEPS)


def test_a_job_goes_on_whatever_ended_it(tmp_path: Path) -> None:
    """Killed twice, within a micro-batch or shortly before one; then ended by SIGTERM and by SIGINT."""
    with Live(tmp_path, engine="inline") as live:
        (tmp_path / "wishes" / "bad.jsonl").write_text('{"id": "bad", "sql": "SELECT nope FROM t"}\n')
        for number in (signal.SIGKILL, signal.SIGKILL, signal.SIGTERM, signal.SIGINT):
            run = live.start()
            live.wait_for(run, live.put_changes(age=len(live.errors) % 50 * YEAR))
            live.put_changes(age=-20 * YEAR)
            os.killpg(run.pid, number)
            assert run.wait(60) == (-number if number == signal.SIGKILL else 0), live.errors
            # The catalog may grow between two runs, and does no harm to what was there.
            (tmp_path / "catalog.sql").write_text(f"{CATALOG}\nCREATE TABLE later (id BIGINT PRIMARY KEY);")
        live.put_bytes(b"\xff\xfe\n\x00")
        live.finish()
        assert live.told() == expected(live.files)
        assert PartsSink(tmp_path / "out").metrics()["changes"] == live.files * LINES, (
            "what is written again counts once"
        )
        answers = {(answer["id"], answer.get("seq")) for answer in live.lines(ANSWERS)}
        assert answers == {("bad", None), *((id, 1) for id in QUERIES)}
        assert len(live.lines(REFUSED)) == 2, "a file that is no text is refused as records"
        assert "Traceback" not in live.errors
        assert "subscription 'bad' refused: unknown column 'nope' near 'nope'" in live.errors


def test_a_full_disk_ends_the_job_with_a_word_and_it_goes_on_when_there_is_room(tmp_path: Path) -> None:
    with Live(tmp_path, engine="inline") as live:
        while live.files * LINES < 600:
            live.put_changes()
        full = live.start("--trigger", "once", preexec=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (20_000,) * 2))
        assert full.wait(60) == 1
        last = live.errors.splitlines()[-1]
        assert last.startswith("failed: ") and "File too large" in last and "goes on where it stopped" in last
        assert live.told() == []
        live.finish()
        assert live.told() == expected(live.files)


def test_many_subscriptions_at_once_are_taken_in_steps(tmp_path: Path) -> None:
    """So that nobody waits for all of them; killed in between, nobody is missing or told twice."""
    with Live(tmp_path, engine="inline") as live:
        live.put_changes()
        many = [f'{{"id": "m{n}", "sql": "SELECT id FROM t WHERE x < {n}"}}\n' for n in range(4_500)]
        (tmp_path / "wishes" / "many.jsonl").write_text("".join(many))
        live.kill_after(2)
        live.finish()
        answered = [answer["id"] for answer in live.lines(ANSWERS)]
        assert len(answered) == len(set(answered)) == len(QUERIES) + 4_500
        snapshots = [line for line in live.told() if '"snapshot": true' in line]
        assert len(snapshots) == len(answered)
        assert "(0 refused)" in live.errors and "batch 5: " in live.errors and "batch 6: " not in live.errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--shards", "2"], "--shards is for Spark"),
        (["--source", "kafka:t"], "no source 'kafka' without Spark"),
        (["--sink", "console"], "no sink 'console' without Spark"),
        (["--source", "files:nowhere"], "there is no folder"),
        (["--trigger", "soon"], "--trigger is 'once' or an interval"),
        (["--load", "nowhere"], "cannot read nowhere"),
    ],
)
def test_what_is_wrong_is_said_before_the_start(tmp_path: Path, words: list[str], said: str) -> None:
    Live(tmp_path, engine="inline")
    done = tidings(tmp_path, *WORDS, *words)
    assert done.returncode == 2 and said in done.stderr, done.stderr
    assert not (tmp_path / "checkpoint").exists()


def test_a_checkpoint_of_something_else_is_refused(tmp_path: Path) -> None:
    live = Live(tmp_path, engine="inline")
    checkpoint = tmp_path / "checkpoint"
    checkpoint.mkdir()
    (checkpoint / "plan.json").write_text("{}")
    assert "is a checkpoint of a job on Spark" in tidings(tmp_path, *WORDS).stderr
    (checkpoint / "plan.json").unlink()
    live.put_changes()
    assert tidings(tmp_path, *WORDS, "--trigger", "once").returncode == 0
    spark = tidings(tmp_path, *(word.replace("inline", "spark") for word in WORDS))
    assert spark.returncode == 2 and "--engine inline" in spark.stderr
    (tmp_path / "catalog.sql").write_text("CREATE TABLE t (id BIGINT PRIMARY KEY);")
    assert "the catalog does not go on from that of the checkpoint" in tidings(tmp_path, *WORDS).stderr
    (checkpoint / "engine.json").unlink()
    assert "is not a whole checkpoint" in tidings(tmp_path, *WORDS).stderr
    assert "has the output of another run" in tidings(tmp_path, *WORDS, "--checkpoint", "other").stderr


def test_rows_that_are_loaded_are_no_news(tmp_path: Path) -> None:
    Live(tmp_path, engine="inline")
    (tmp_path / "rows.jsonl").write_text(
        '{"table": "t", "op": "insert", "row": {"id": 1, "kind": "a", "x": 20}}\n{"table": "t"}\n'
    )
    for _ in range(2):
        assert tidings(tmp_path, *WORDS, "--trigger", "once", "--load", "rows.jsonl").returncode == 0
    live = Live.__new__(Live)
    live._folder = tmp_path
    told = live.told()
    assert len(told) == len(QUERIES) and all('"snapshot": true' in line for line in told)
    assert any('"row": {"id": 1, "kind": "a", "x": 20.0}' in line for line in told)
    assert len(live.lines(REFUSED)) == 1
