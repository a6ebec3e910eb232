"""The command line: exit codes, messages without traces, files that appear whole or not at all."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from in_process import tidings as tidings_here
from tidings.files import only_one

FILES = {
    "catalog": "CREATE TABLE t (id BIGINT PRIMARY KEY, kind TEXT, x DOUBLE);",
    "subscriptions": '{"id": "a", "sql": "SELECT * FROM t WHERE x > 1"}\n{"id": "b", "sql": "SELECT nothing FROM t"}\n',
    "changes": '{"seq": 1, "table": "t", "op": "insert", "row": {"id": 1, "kind": "k", "x": 2.5}}\nnonsense\n',
}


def tidings(*words: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidings.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=120)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "folder").mkdir()
    return tmp_path


def replay_words(*words: str, **paths: str) -> list[str]:
    options = {
        "catalog": "catalog",
        "subscriptions": "subscriptions",
        "changes": "changes",
        "out": "out.jsonl",
        **paths,
    }
    return ["replay", *(word for name, path in options.items() for word in (f"--{name}", path)), *words]


def replay(folder: Path, *words: str, **paths: str) -> subprocess.CompletedProcess[str]:
    return tidings_here(folder, *replay_words(*words, **paths))


def replay_itself(folder: Path, *words: str, **paths: str) -> subprocess.CompletedProcess[str]:
    """The same in a process of its own."""
    return tidings(*replay_words(*words, **paths), folder=folder)


def test_replay_writes_everything_it_is_asked_for(folder: Path) -> None:
    done = replay_itself(folder, "--quarantine", "q.jsonl", "--stats", "stats.json", "--strategy", "select=region")
    assert (done.returncode, done.stdout) == (0, "")
    assert "2 records refused, see q.jsonl" in done.stderr
    told = [json.loads(line) for line in (folder / "out.jsonl").read_text().splitlines()]
    assert [(record["subscription"], record["seq"], record["snapshot"]) for record in told] == [
        ("a", 0, True),
        ("a", 1, False),
    ]
    refused = [json.loads(line) for line in (folder / "q.jsonl").read_text().splitlines()]
    assert [(record["source"], record["line"]) for record in refused] == [("subscriptions", 2), ("changes", 2)]
    stats = json.loads((folder / "stats.json").read_text())
    assert (stats["changes"], stats["messages"], stats["deliveries"], stats["notifications"]) == (1, 1, 2, 2)
    assert stats["message_bytes"] > 0
    assert stats["seconds"] > 0
    assert stats["peak_rss_mb"] > 10
    assert stats["families"]["select"]["notifications"] == 2
    assert not list(folder.glob("*.partial"))


@pytest.mark.parametrize("sender", ["entered", "regions"])
def test_places_change_no_line_and_are_counted(folder: Path, sender: str) -> None:
    assert replay(folder).returncode == 0
    whole = (folder / "out.jsonl").read_bytes()
    done = replay_itself(folder, "--places", "3", "--sender", sender, "--stats", "stats.json")
    assert done.returncode == 0 and (folder / "out.jsonl").read_bytes() == whole
    stats = json.loads((folder / "stats.json").read_text())
    assert [place["place"] for place in stats["places"]] == [0, 1, 2]
    assert sum(place["subscriptions"] for place in stats["places"]) == 1
    assert sum(place["rows"] for place in stats["places"]) == sum(place["messages"] for place in stats["places"]) == 1
    assert sum(place["bytes"] for place in stats["places"]) > 0


def test_quarantine_has_a_default_place_and_appears_only_when_needed(folder: Path) -> None:
    assert replay(folder).returncode == 0
    assert (folder / "out.jsonl.quarantine.jsonl").exists()
    (folder / "changes").write_text(FILES["changes"].splitlines()[0])
    (folder / "subscriptions").write_text(FILES["subscriptions"].splitlines()[0])
    assert replay(folder).returncode == 0
    assert not (folder / "out.jsonl.quarantine.jsonl").exists()


@pytest.mark.parametrize(
    ("paths", "words", "message"),
    [
        ({"catalog": "missing"}, (), "cannot read missing: No such file"),
        ({"changes": "folder"}, (), "cannot read folder: it is a folder"),
        ({"out": "folder"}, (), "cannot write folder: it is a folder"),
        ({}, ("--stats", "folder"), "cannot write folder: it is a folder"),
        ({}, ("--quarantine", "./out.jsonl"), "cannot write out.jsonl: it is also used as out.jsonl"),
        ({"out": "changes"}, (), "cannot write changes: it is also used as changes"),
        ({}, ("--batch", "99999999999999999999"), "Invalid value for '--batch'"),
        ({"changes": "missing"}, (), "cannot read missing: No such file"),
        ({"catalog": "changes"}, (), "error: "),
        ({"out": "catalog/out.jsonl"}, (), "cannot write catalog/out.jsonl"),
        (
            {},
            ("--strategy", "select=magic"),
            "family 'select' has no strategy 'magic'; it has shared, region",
        ),
        ({}, ("--strategy", "magic=region"), "unknown family 'magic'; there are select"),
        ({}, ("--strategy", "region"), "--strategy takes FAMILY=NAME, not 'region'"),
        ({}, ("--engine", "magic"), "magic"),
        ({}, ("--batch", "-1"), "Invalid value for '--batch'"),
        ({}, ("--places", "-1"), "Invalid value for '--places'"),
        ({}, ("--places", "2", "--engine", "spark"), "--places is for --engine inline"),
        ({}, ("--sender", "regions"), "say how many there are with --places N"),
    ],
)
def test_mistakes_end_with_code_2_and_no_trace(
    folder: Path, paths: dict[str, str], words: tuple[str, ...], message: str
) -> None:
    done = replay(folder, *words, **paths)
    assert done.returncode == 2
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (folder / "out.jsonl").exists()


def test_help_is_light_and_teaches() -> None:
    probe = (
        "import sys; from tidings.cli.main import app;"
        "print(sorted({'numpy', 'pyspark', 'numba', 'sqlglot'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert shown.strip() == "[]"
    shown = tidings("--help").stdout
    for command in ("demo", "replay", "explain", "workload", "bench"):
        assert command in shown
    assert "Example: tidings replay" in tidings("replay", "--help").stdout


def test_explain_does_not_load_what_it_does_not_need() -> None:
    probe = (
        "import sys; from tidings.cli.explain import explain;"
        "explain('SELECT * FROM stocks WHERE per > 1', None, [], None, None, None, None);"
        "print(sorted({'pyspark', 'numba', 'pandas'} & set(sys.modules)))"
    )
    shown = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True).stdout
    assert shown.splitlines()[-1] == "[]"


def test_version() -> None:
    assert tidings("--version").stdout == "tidings 0.1.0\n"


def test_pipes_and_links_stay_what_they_are(folder: Path) -> None:
    os.mkfifo(folder / "pipe")
    (folder / "link").symlink_to("real.jsonl")
    with subprocess.Popen(["cp", "changes", "pipe"], cwd=folder):
        assert replay_itself(folder, changes="pipe", out="link").returncode == 0
    assert (folder / "link").is_symlink()
    assert len((folder / "real.jsonl").read_text().splitlines()) == 2
    done = replay_itself(folder, out="/dev/stdout")
    assert done.stdout == (folder / "real.jsonl").read_text()
    assert Path("/dev/stdout").is_symlink()


def test_a_byte_order_mark_is_no_part_of_the_data(folder: Path) -> None:
    for name, text in FILES.items():
        (folder / name).write_text(text, encoding="utf-8-sig")
    assert replay(folder).returncode == 0
    assert len((folder / "out.jsonl").read_text().splitlines()) == 2


def test_column_names_that_rows_cannot_use_are_refused(folder: Path) -> None:
    (folder / "catalog").write_text('CREATE TABLE t (id BIGINT PRIMARY KEY, "we""ird" TEXT);')
    done = replay(folder)
    assert done.returncode == 2
    assert "which rows cannot use" in done.stderr


def test_two_runs_do_not_write_one_output(folder: Path) -> None:
    with only_one(folder / "out.jsonl"):
        done = replay_itself(folder)
    assert (done.returncode, done.stdout) == (2, "")
    assert "another run is writing out.jsonl" in done.stderr
    assert not (folder / "out.jsonl").exists()
    assert replay(folder).returncode == 0
    assert not (folder / "out.jsonl.lock").exists()
