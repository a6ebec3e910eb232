"""`tidings explain --id` says where a subscription stands, whatever the files are like."""

import json

import pytest
from typer.testing import CliRunner

from tidings.cli.main import app

CATALOG = "CREATE TABLE quotes (symbol TEXT PRIMARY KEY, price DOUBLE, volume BIGINT, at TIMESTAMP);"
MOVED = "SELECT price FROM quotes WHERE symbol = 'A' AND moved(price) >= 5"
SILENT = "SELECT * FROM quotes WHERE symbol = 'A' AND (moved(price) >= 5 OR silent_for(at) >= INTERVAL '30 days')"


def quote(seq, price, volume=1, at="9999-12-30T00:00:00", op="upsert", symbol="A"):
    row = {"symbol": symbol, "price": price, "volume": volume, "at": at}
    return {"seq": seq, "table": "quotes", "op": op, "row": row}


SUBSCRIPTIONS = [
    {"id": "moved", "sql": MOVED},
    {"id": "silent", "sql": SILENT},
    {"id": "all", "sql": "SELECT * FROM quotes WHERE moved(price) >= 5"},
    {"id": "refused first", "sql": "SELECT nonsense"},
    {"id": "refused first", "sql": MOVED},
    {"id": "two lives", "sql": MOVED, "after": 1},
    {"id": "two lives", "drop": True, "after": 2},
    {"id": "two lives", "sql": MOVED, "after": 3},
    {"id": "not dropped", "sql": MOVED},
    {"id": "not dropped", "sql": "x", "drop": True, "after": 1},
    {"id": "select", "sql": "SELECT * FROM quotes WHERE price > 5"},
]
CHANGES = [quote(1, 100.0), quote(2, 103.0), quote(3, 103.0, volume=2), quote(4, 104.0), quote(5, 7.0, symbol="B")]


@pytest.fixture
def explain(tmp_path):
    (tmp_path / "catalog.sql").write_text(CATALOG)
    lines = ["{broken", *map(json.dumps, SUBSCRIPTIONS)]
    (tmp_path / "subscriptions.jsonl").write_text("\n".join(lines))
    (tmp_path / "changes.jsonl").write_text("\n".join(["[]", *map(json.dumps, CHANGES)]))
    files = [f"--{name}={tmp_path / file}" for name, file in (("catalog", "catalog.sql"),)]
    files += [f"--{name}={tmp_path / name}.jsonl" for name in ("subscriptions", "changes")]

    def run(id, *options):
        result = CliRunner().invoke(app, ["explain", "--id", id, *files, *options])
        return result.exit_code, result.output + (str(result.exception) if result.exception else "")

    return run


def test_last_told_now_and_how_far_to_go(explain):
    code, text = explain("moved")
    assert code == 0
    assert "price = 100.0 at seq 1 (told 1 time in all)" in text
    assert "price = 104.0 since seq 4, moved by +4" in text
    assert "at 105.0 or above (1 to go), at 95.0 or below (9 to go)" in text


def test_an_earlier_moment(explain):
    assert "price = 103.0 since seq 2" in explain("moved", "--at", "3")[1]


def test_every_row(explain):
    text = explain("all")[1]
    assert "symbol = 'A'" in text
    assert "symbol = 'B'" in text


def test_silence_that_no_clock_can_reach(explain):
    assert "at cannot advance that far" in explain("silent")[1]


@pytest.mark.parametrize("id", ["refused first", "not dropped"])
def test_lives_are_those_that_the_door_lets_in(explain, id):
    code, text = explain(id)
    assert code == 0
    assert "after seq 0\n" in text


def test_the_life_at_the_moment_asked_for(explain):
    assert "after seq 3\n" in explain("two lives")[1]
    assert "after seq 1, until seq 2\n" in explain("two lives", "--at", "2")[1]


def test_families_without_memory_have_nothing_to_add(explain):
    code, text = explain("select")
    assert code == 0
    assert "3 notifications" not in text
    assert "was told" in text


@pytest.mark.parametrize(
    ("id", "options", "message"),
    [("nobody", [], "there is no subscription 'nobody'"), ("two lives", ["--at", "0"], "does not exist before seq 1")],
)
def test_clear_errors(explain, id, options, message):
    code, text = explain(id, *options)
    assert code != 0
    assert message in text
