"""What `tidings explain` says about offers subscriptions: exact ends, whom they match, and how the best are chosen."""

import pytest
from typer.testing import CliRunner

from tidings.cli.main import app

CATALOG = "CREATE TABLE market (topic TEXT, lot BIGINT, price DOUBLE, spot POINT) WITH (rows = 'constraints'{});"


@pytest.fixture
def explain(tmp_path):
    def lines(where, *options, matching=""):
        (tmp_path / "catalog.sql").write_text(CATALOG.format(matching))
        words = ["explain", "--catalog", str(tmp_path / "catalog.sql"), *options]
        run = CliRunner().invoke(app, [*words, f"SELECT * FROM market WHERE {where}"])
        assert run.exit_code == 0, run.output
        return {line[:14].strip(): line[16:] for line in run.output.splitlines()}

    return lines


@pytest.mark.parametrize(
    ("where", "point"),
    [
        ("lot > 5 AND price <= 1.5", "(lot: 6 .. +inf, price: -inf .. 1.5) in 4 dimensions"),
        ("topic = 'a text of many letters'", "(topic: 'a text of many letters') in 2 dimensions"),
        ("topic LIKE 'pen%'", "(topic: 'pen' .. before 'peo') in 2 dimensions"),
        ("topic > 'a' AND topic <= 'b'", "(topic: after 'a' .. 'b') in 2 dimensions"),
        ("topic < 'b'", "(topic: -inf .. before 'b') in 2 dimensions"),
        ("spot = point(1, 2)", "(spot.x: 1.0, spot.y: 2.0) in 4 dimensions"),
    ],
)
def test_the_point_has_the_exact_ends(explain, where, point):
    lines = explain(where)
    assert lines["point"] == point
    assert "channel" not in lines


def test_several_points_have_a_line_each(explain):
    lines = explain("topic IN ('a', 'b', 'c', 'd', 'e', 'f', 'g') AND lot < 5")
    assert lines["point 5"] == "(topic: 'e', lot: -inf .. 4) in 4 dimensions"
    assert lines[""] == "and 2 more"
    assert lines["strategy"] == "shared"


@pytest.mark.parametrize(
    ("where", "matching", "words"),
    [
        ("lot = 1", "", "publications on lot alone"),
        ("lot = 1 AND spot = point(1, 2)", "", "on one or more of lot, spot, and on no other attribute"),
        ("lot = 1 OR price = 2", "", "on attributes that one of these points has, and on no other"),
        ("lot = 1 AND price = 2", ", matching = 'classic'", "on lot, price, and maybe on others"),
        ("lot = 1 OR price = 2", ", matching = 'classic'", "on all attributes of one of these points, and maybe"),
    ],
)
def test_who_is_matched(explain, where, matching, words):
    assert words in explain(where, matching=matching)["matches"]


def test_best_first(explain):
    assert explain("lot > 1 ORDER BY lot LIMIT 3")["best first"].startswith("the first 3 by the least lot that both")
    lines = explain("lot > 1 ORDER BY price DESC LIMIT 1")
    assert lines["best first"].startswith("the first 1 by the greatest price")
    assert lines["strategy"] == "shared"


def test_costs_of_strategies(explain):
    assert "search among all points" in explain("lot = 1")["a change costs"]
    assert explain("lot = 1")["strategy"] == "shared (others: region)"
    by_region = explain("lot = 1", "--strategy", "offers=region")
    assert "which gateways have a point in the row's region" in by_region["a change costs"]
    assert by_region["strategy"] == "region (others: shared)"
    several = explain("lot IN (1, 2)", "--strategy", "offers=region")
    assert (several["strategy"], "search among all" in several["a change costs"]) == ("shared", True)
