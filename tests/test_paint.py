"""`tidings paint` draws what one change sends, where the subscriptions are at that moment."""

import json
from xml.etree import ElementTree

import numpy as np
import pytest
from typer.testing import CliRunner

from tidings.cli.main import app
from tidings.model.codes import CODE_MAX, CODE_MIN, code_of, codes_of_doubles
from tidings.model.errors import UsageError
from tidings.model.types import ColumnType
from tidings.painting import collect
from tidings.painting.scale import scale_for
from tidings.sql import parse_catalog

CATALOG = "CREATE TABLE stocks (symbol TEXT PRIMARY KEY, sector TEXT, risk DOUBLE, per DOUBLE);"
TOP = "SELECT * FROM stocks WHERE sector = 'tech' AND risk BETWEEN {} AND {} ORDER BY per LIMIT 2"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def files(tmp_path):
    """Rows A to D at risk 1 to 4, best first; then A falls behind all others."""
    rows = [("A", 1, 10), ("B", 2, 20), ("C", 3, 30), ("D", 4, 40), ("A", 1, 99)]
    changes = [
        {
            "seq": seq,
            "table": "stocks",
            "op": "upsert",
            "row": dict(zip(("symbol", "risk", "per"), row, strict=True)) | {"sector": "tech"},
        }
        for seq, row in enumerate(rows, 1)
    ]
    subscriptions = [
        {"id": "wide", "sql": TOP.format(0, 9)},
        {"id": "narrow", "sql": TOP.format(3, 9)},
        {"id": "late", "sql": TOP.format(0, 5), "after": 5},
        {"id": "gone", "sql": TOP.format(1, 9)},
        {"id": "gone", "drop": True, "after": 3},
        {"id": "plain", "sql": "SELECT * FROM stocks WHERE risk < 3"},
        {"id": "all", "sql": "SELECT * FROM stocks WHERE sector = 'tech'"},
    ]
    for name, lines in (("subscriptions", subscriptions), ("changes", changes)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    (tmp_path / "catalog.sql").write_text(CATALOG)
    return tmp_path


def scene(files, seq, id=None):
    return collect(parse_catalog(CATALOG), files / "subscriptions.jsonl", files / "changes.jsonl", seq, id)


def test_a_fall_sends_the_row_and_then_those_that_take_its_place(files):
    found = scene(files, 5)
    assert [sent.label.split(",")[0] for sent in found.sent] == ["symbol A", "symbol C"]
    assert [sent.reached for sent in found.sent] == [1, 1]
    # "late" is not there yet, "gone" no longer is.
    assert len(found.points) == 2


def test_the_plane_of_a_subscription_can_be_asked_for(files):
    found = scene(files, 2, "plain")
    assert found.column.name == "risk"
    assert found.marked is not None and found.marked[0] == CODE_MIN
    assert [sent.reached for sent in found.sent] == [1]


@pytest.mark.parametrize(
    ("seq", "id", "problem"),
    [
        (99, None, "there is no change with seq 99"),
        (5, "nobody", "no subscription 'nobody' before seq 5"),
        (5, "late", "no subscription 'late' before seq 5"),
        (5, "all", "not a point of a plane"),
    ],
)
def test_what_cannot_be_painted_is_said(files, seq, id, problem):
    with pytest.raises(UsageError, match=problem):
        scene(files, seq, id)


def test_the_command_writes_a_picture(files):
    options = [f"--{name}={files / name}.jsonl" for name in ("subscriptions", "changes")]
    run = CliRunner().invoke(
        app,
        [
            "paint",
            f"--catalog={files / 'catalog.sql'}",
            *options,
            "--change=5",
            f"--out={files / 'x.svg'}",
            "--id=wide",
        ],
    )
    assert run.exit_code == 0, run.output
    picture = ElementTree.parse(files / "x.svg").getroot()
    tiles = [shape for shape in picture.iter(f"{SVG}rect") if shape.get("fill-opacity") == ".28"]
    assert len(tiles) == sum(len(sent.lo) for sent in scene(files, 5).sent)
    texts = [text.text for text in picture.iter(f"{SVG}text")]
    assert "2 subscriptions" in texts and "the one asked for is circled" in texts


def test_only_svg_is_written(files):
    run = CliRunner().invoke(
        app, ["paint", "--catalog=c", "--subscriptions=s", "--changes=x", "--change=1", "--out=x.bmp"]
    )
    assert isinstance(run.exception, UsageError)


MARKET = "CREATE TABLE market (topic TEXT, price DOUBLE) WITH (rows = 'constraints');"


@pytest.fixture
def market(tmp_path):
    """A publication from 1 to 2, then from 1.5 to 3.5; five subscriptions in the plane of prices, and others."""
    wanted = {
        "cheap": "price <= 1.1",
        "two": "price BETWEEN 2 AND 3",
        "one": "price = 1",
        "dear": "price >= 4",
        "four": "price BETWEEN 3.2 AND 4",
        "pens": "topic = 'pens' AND price = 2",
        "either": "price IN (1, 7)",
    }
    subscriptions = [{"id": id, "sql": f"SELECT * FROM market WHERE {where}"} for id, where in wanted.items()]
    subscriptions.append({"id": "best", "sql": "SELECT * FROM market WHERE price > 0 ORDER BY price LIMIT 1"})
    changes = [
        {"seq": 1, "table": "market", "op": "insert", "id": "p1", "where": "price BETWEEN 1 AND 2"},
        {"seq": 2, "table": "market", "op": "update", "id": "p1", "where": "price BETWEEN 1.5 AND 3.5"},
        {"seq": 3, "table": "market", "op": "delete", "id": "p1"},
    ]
    for name, lines in (("subscriptions", subscriptions), ("changes", changes)):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return tmp_path


def market_scene(files, seq, id=None):
    catalog = parse_catalog(MARKET)
    return collect(catalog, files / "subscriptions.jsonl", files / "changes.jsonl", seq, id)


def test_a_publication_is_sent_to_all_ranges_that_meet_its_own(market):
    (sent,) = market_scene(market, 1).sent
    # Ranges that begin at 2 or before, and end at 1 or after.
    assert sent.hi[:, 0].tolist() == [code_of(ColumnType.DOUBLE, 2.0)] and sent.lo[:, 0].tolist() == [CODE_MIN]
    assert sent.lo[:, 1].tolist() == [code_of(ColumnType.DOUBLE, 1.0)] and sent.hi[:, 1].tolist() == [CODE_MAX]
    assert sent.reached == 3, "cheap, two and one"
    assert sent.label == "id p1, where price BETWEEN 1 AND 2"


def test_a_changed_publication_is_sent_where_it_was_and_where_it_is(market):
    found = market_scene(market, 2, "dear")
    assert found.column.name == "price"
    assert found.marked == (code_of(ColumnType.DOUBLE, 4.0), CODE_MAX)
    assert [(len(sent.lo), sent.reached, sent.label) for sent in found.sent] == [
        (2, 4, "id p1, where price BETWEEN 1.5 AND 3.5")
    ]
    assert [sent.label for sent in market_scene(market, 3).sent] == ["id p1, where price BETWEEN 1.5 AND 3.5"]
    assert len(found.points) == 5


@pytest.mark.parametrize(
    ("id", "problem"),
    [
        ("pens", "not a point of a plane"),
        ("either", "not a point of a plane"),
        ("best", "not a point of a plane"),
    ],
)
def test_offers_that_cannot_be_painted(market, id, problem):
    with pytest.raises(UsageError, match=problem):
        market_scene(market, 1, id)


@pytest.mark.parametrize("type", [ColumnType.INT, ColumnType.DOUBLE, ColumnType.DATE])
def test_scales_have_room_for_all_and_cut_off_open_ends(type):
    codes = codes_of_doubles(np.array([-2.0, 5.0])) if type is ColumnType.DOUBLE else np.array([-2, 5]) * 86_400_000_000
    scale = scale_for(type, np.append(codes, [CODE_MIN, CODE_MAX]), 100.0)
    low, high = scale.place(codes)
    assert 0 < low < high < 100
    assert scale.place(np.array([CODE_MIN, CODE_MAX])).tolist() == [0, 100]
    assert 2 <= len(scale.ticks()) <= 11
