"""What commands say is true: about queries, pictures that cannot be drawn, and files that were swapped."""

from __future__ import annotations

import json
import re
import tomllib
from pathlib import Path

import pytest
from typer.testing import CliRunner

from tidings.cli.main import app
from tidings.model.errors import UsageError

CATALOG = """
CREATE TABLE stocks (symbol TEXT PRIMARY KEY, sector TEXT, per DOUBLE, risk DOUBLE);
CREATE TABLE reviews (id BIGINT PRIMARY KEY, symbol TEXT, rating DOUBLE);
"""
SUBSCRIPTIONS = [
    {"id": "a", "sql": "SELECT * FROM stocks WHERE per BETWEEN 1 AND 50 AND risk BETWEEN 1 AND 9"},
    {"id": "b", "sql": "SELECT * FROM stocks WHERE per >= 5 AND risk < 2"},
    {"id": "b", "drop": True, "after": 2},
]
CHANGES = [
    {"seq": 1, "table": "stocks", "op": "insert", "row": {"symbol": "X", "sector": "tech", "per": 7, "risk": 1}},
    {"seq": 2, "table": "stocks", "op": "delete", "row": {"symbol": "X"}},
]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "catalog.sql").write_text(CATALOG)
    for name, records in (("subscriptions", SUBSCRIPTIONS), ("changes", CHANGES)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    return tmp_path


def explained(folder: Path, sql: str, *words: str) -> dict[str, str]:
    run = CliRunner().invoke(app, ["explain", f"--catalog={folder / 'catalog.sql'}", sql, *words])
    assert run.exit_code == 0, run.output
    return {line[:14].strip(): line[16:] for line in run.output.splitlines()}


def test_a_join_with_an_equality_is_not_said_to_have_none(folder: Path) -> None:
    sql = "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE sector = 'tech' AND rating >= 6"
    said = explained(folder, sql)
    assert "channel" not in said
    assert said["point"] == "stocks.sector = 'tech', reviews.rating in [6.0, +inf]"
    several = explained(folder, sql.replace("= 'tech'", "IN ('food', 'oil', 'tech')"))
    assert several["point"].startswith("stocks.sector one of several values from 'food' to 'tech', ")


def test_rows_are_joined_in_the_engine(folder: Path) -> None:
    sql = "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE rating >= 6"
    said = explained(folder, sql)
    assert "joined with its partners in the engine" in said["a change costs"]
    assert said["strategy"] == "shared"


def paint(folder: Path, *words: str) -> str:
    files = [f"--{name}={folder / name}.jsonl" for name in ("subscriptions", "changes")]
    out = folder / "x.svg"
    run = CliRunner().invoke(
        app, ["paint", f"--catalog={folder / 'catalog.sql'}", *files, "--change=1", f"--out={out}", *words]
    )
    assert isinstance(run.exception, UsageError) and not out.exists()
    return str(run.exception)


def test_two_ranges_cannot_be_painted_and_nobody_is_said_to_be_absent(folder: Path) -> None:
    # Before any change is read: there is nothing to wait for.
    (folder / "changes.jsonl").write_text("")
    for words in ((), ("--id=a",)):
        said = paint(folder, *words)
        assert "queries with one range of values" in said and "nobody" not in said


def test_a_change_that_reaches_no_picture_is_not_said_to_be_missing(folder: Path) -> None:
    wanted = {"id": "c", "sql": "SELECT * FROM reviews WHERE rating BETWEEN 1 AND 9"}
    (folder / "subscriptions.jsonl").write_text(json.dumps(wanted))
    assert "the change with seq 1 reaches no subscription" in paint(folder)


@pytest.mark.parametrize("engine", ["inline", "spark"])
@pytest.mark.parametrize(
    ("subscriptions", "changes", "said"),
    [
        ("changes", "subscriptions", ("all records of changes.jsonl are changes", "are subscriptions, not changes")),
        ("changes", "changes", ("all records of changes.jsonl are changes, not subscriptions: ",)),
        ("subscriptions", "subscriptions", ("all records of subscriptions.jsonl are subscriptions, not changes: ",)),
    ],
)
def test_swapped_files_end_a_replay(
    folder: Path, monkeypatch: pytest.MonkeyPatch, engine: str, subscriptions: str, changes: str, said: tuple[str, ...]
) -> None:
    monkeypatch.chdir(folder)
    files = [f"--subscriptions={subscriptions}.jsonl", f"--changes={changes}.jsonl", "--out=out.jsonl"]
    run = CliRunner().invoke(app, ["replay", "--catalog=catalog.sql", *files, f"--engine={engine}"])
    assert isinstance(run.exception, UsageError)
    assert all(part in str(run.exception) for part in said)
    assert "were --subscriptions and --changes swapped?" in str(run.exception)
    assert not (folder / "out.jsonl").exists()


def test_one_record_of_the_right_kind_is_enough(folder: Path) -> None:
    """A file with a few stray lines is no swapped file: those lines go to quarantine."""
    with (folder / "changes.jsonl").open("a") as changes:
        changes.write(json.dumps(SUBSCRIPTIONS[0]))
    files = [f"--{name}={folder / name}.jsonl" for name in ("subscriptions", "changes")]
    run = CliRunner().invoke(
        app, ["replay", f"--catalog={folder / 'catalog.sql'}", *files, f"--out={folder / 'out.jsonl'}"]
    )
    assert run.exit_code == 0, run.output
    assert len((folder / "out.jsonl.quarantine.jsonl").read_text().splitlines()) == 1


ROOT = Path(__file__).parent.parent


@pytest.mark.parametrize("page", ["README.md", "docs/guide.md", "docs/replay.md"])
def test_commands_work_for_whoever_typed_what_stands_above_them(page: str) -> None:
    """`tidings` is found only after it was installed by make, and the environment was entered."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    typed = [line.removeprefix("$ ").split() for block in blocks for line in block.splitlines() if line.strip()]
    first = next(at for at, words in enumerate(typed) if words[0] == "tidings")
    installed = [at for at, words in enumerate(typed) if words[0] == "make" and words[1] in ("install", "demo", "test")]
    entered = typed.index(["source", ".venv/bin/activate"])
    assert installed[0] < entered < first


def test_pip_is_given_what_there_is() -> None:
    """The package is on no index: pages install it from the clone, with extras that it has."""
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    named = []
    for page in (ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").glob("*.md")):
        for wanted in re.findall(r"pip install ([^`\n]*)", page.read_text()):
            found = re.fullmatch(r"'\.\[([\w,]+)\]'", wanted)
            assert found is not None, f"{page.name}: pip install {wanted}"
            named += found[1].split(",")
    assert named and set(named) <= extras.keys()


def test_the_picture_of_the_demo_is_one_of_today() -> None:
    """Everything that does not move is in the picture as the screen has it. `make picture` draws it anew."""
    from tidings.cli.demo import DemoScreen
    from tidings.workloads.market.customers import CUSTOMERS

    picture = re.sub(r"<[^>]*>", " ", (ROOT / "docs" / "img" / "demo.svg").read_text())
    text = " ".join(
        picture.replace("&#160;", " ").replace("&#x27;", "'").replace("&lt;", "<").replace("&gt;", ">").split()
    )
    for customer in CUSTOMERS:
        for part in (f"{customer.name} wants {customer.wish}", customer.sql):
            assert all(word in text for word in part.split()), part
    title = DemoScreen(100_000).introduction().partition("\n")[0].partition(".")[0]
    assert title in text
    assert re.search(r"left the range: P/E [\d.]+ [<>] \d+|came into the range", text)
