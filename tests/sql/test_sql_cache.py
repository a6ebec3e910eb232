"""Proves that the template cache changes nothing but the time: hits, careful hits and fresh parses agree."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sql_golden import CATALOG as GOLDEN_CATALOG
from sql_predicates import CATALOG, LITERALS, predicates

from tidings.model.errors import SqlError
from tidings.sql import Compiler
from tidings.sql.fingerprint import careful_cut, fast_cut

SPACES = [
    "",
    "",
    "",
    " ",
    "  ",
    "\t",
    "\n",
    "\r\n",
    " -- it's 1 comment\n",
    "/* 'a 5' */",
    "/* -- */",
    "/**/",
    '/* " */',
    "-- \r",
]


@st.composite
def odd_statements(draw: st.DrawFn) -> tuple[str, str]:
    """Two statements that differ in their literals only, oddly spaced, commented and quoted."""
    first, second = ["SELECT * FROM t WHERE"], ["SELECT * FROM t WHERE"]
    for index in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(["big", "real1", "name", "day", "moment"]))
        column = draw(st.sampled_from([name, f'"{name}"', f"t . {name}"]))
        sign = draw(st.sampled_from(["=", "<", ">=", "<=", ">", "<>", "!="]))
        word = draw(st.sampled_from([" AND", " AND", " OR", " AND NOT", " or not"])) if index else ""
        gap, other_gap = draw(st.sampled_from(SPACES)), draw(st.sampled_from(SPACES))
        for texts in (first, second):
            literal = draw(LITERALS[name])
            texts.append(f"{word} {column}{gap}{sign}{other_gap} {literal}")
    return "".join(first), "".join(second)


def compiled(compiler: Compiler, sql: str) -> object:
    try:
        return compiler.compile(sql)
    except SqlError as error:
        return str(error)


@st.composite
def odd_silences(draw: st.DrawFn) -> tuple[str, str]:
    """Two statements that differ in their literals only, the one that belongs to the shape included."""
    gaps = [draw(st.sampled_from(SPACES)) for _ in range(6)]
    column = draw(st.sampled_from(["moment", '"moment"', "t . moment", "big"]))
    texts: list[str] = []
    is_flipped = draw(st.booleans())
    for _ in range(2):
        number = draw(st.sampled_from(["1", "2", "12", ".5", "0", "1.5"]))
        words = [number] if column == "big" else draw(st.sampled_from([[f"'{number} hour'"], [f"'{number}'", "hour"]]))
        length = gaps[0].join(words if column == "big" else ["INTERVAL ", *words])
        call = f"silent_for{gaps[1]}({column}{gaps[2]})"
        silence = gaps[3].join([length, "<=", call] if is_flipped else [call, ">=", length])
        texts.append(f"SELECT * FROM t WHERE (moved(big) >={gaps[4]} {number}{gaps[5]} OR {silence}) AND name = '1'")
    return texts[0], texts[1]


@given(st.one_of(odd_statements(), odd_silences()))
@settings(max_examples=240, deadline=None)
def test_cached_equals_fresh(pair: tuple[str, str]) -> None:
    cached = Compiler(CATALOG)
    for sql in (pair[0], pair[1], pair[0]):
        assert compiled(cached, sql) == compiled(Compiler(CATALOG, templates_max=0), sql)


SILENCES = [
    "(moved(big) >= 1 OR silent_for(moment) >= INTERVAL '1 hour')",
    "(silent_for(big) >= 11 OR moved(big) >= 1)",
    "(INTERVAL 1 hour <= silent_for(moment) OR moved(big) >= 1)",
]


@given(
    st.lists(st.one_of(predicates(), st.sampled_from(SILENCES)), min_size=1, max_size=3),
    st.text("'\"-/*1 a.e\n;x=", max_size=12),
    st.integers(0, 200),
)
@settings(max_examples=120, deadline=None)
def test_cached_equals_fresh_after_damage(conditions: list[str], damage: str, at: int) -> None:
    cached = Compiler(CATALOG)
    sql = f"SELECT * FROM t WHERE {' AND '.join(conditions)}"
    compiled(cached, sql)
    broken = sql[: at % len(sql)] + damage + sql[at % len(sql) :]
    for text in (broken, broken.replace("1", "2"), broken):
        assert compiled(cached, text) == compiled(Compiler(CATALOG, templates_max=0), text)


@pytest.mark.parametrize(
    ("sql", "literals"),
    [
        ("col1 = 1 AND x2y < 2.5", ["1", "2.5"]),
        ("a=-1e5 AND b>.5 AND c<5. AND d=1E-3", ["1e5", ".5", "5.", "1E-3"]),
        ("t1.a = 'it''s 5' AND b IN (1,2,'3')", ["'it''s 5'", "1", "2", "'3'"]),
        ("a = 1x AND b = 1.2.3 AND c = 1_0 AND d = $1 AND e = t.5", []),
        ("a > 5 ORDER BY a LIMIT 10", ["5"]),
        ("a > 5 ORDER BY a\nlimit\n\n7", ["5"]),
        ("limit1 = 1", ["1"]),
        ("a = ''", ["''"]),
    ],
)
def test_cut_finds_literals(sql: str, literals: list[str]) -> None:
    assert fast_cut(sql)[1] == literals
    found = careful_cut(sql)
    assert found is not None and found[0].literals == literals
    assert [sql[start:end] for start, end in found[1]] == literals


def test_careful_cut_knows_comments_and_quoted_names() -> None:
    found = careful_cut('"a 1" = 1 -- it\'s 2\n AND /* \'3\' */ b = \'--4\' AND "c""5" = 6')
    assert found is not None and found[0].literals == ["1", "'--4'", "6"]
    assert careful_cut("a = 1 /* /* 2 */ */") is None
    assert careful_cut("SELECT /*+ hint(1) */ a") is None


@pytest.mark.parametrize(
    ("template", "parsed"),
    [
        ("SELECT * FROM stocks WHERE sector = '{0}' AND per BETWEEN {0} AND {0}.5 AND rank < -{0}", 1),
        ("SELECT * FROM stocks WHERE sector = '{0}' -- it's comment {0}", 1),
        ('SELECT * FROM authors WHERE /* \'{0} */ "Odd Name 1" = {0}', 1),
        ('SELECT "symbol" FROM stocks WHERE "per" > {0} ORDER BY per LIMIT 5', 1),
        ("SELECT * FROM stocks ORDER BY per LIMIT 1{0}", 9),
    ],
)
def test_statements_of_one_template_are_parsed_once(
    template: str, parsed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = Compiler(GOLDEN_CATALOG)
    calls: list[str] = []
    parse = compiler._parse
    monkeypatch.setattr(compiler, "_parse", lambda sql: calls.append(sql) or parse(sql))
    for number in range(1, 10):
        compiler.compile(template.format(number))
    assert len(calls) == parsed


def test_cache_is_bounded_and_keeps_what_is_used() -> None:
    compiler = Compiler(GOLDEN_CATALOG, templates_max=20)
    hot = "SELECT symbol FROM stocks WHERE per > 1"
    compiler.compile(hot)
    for limit in range(1, 100):
        compiler.compile(f"SELECT symbol FROM stocks ORDER BY per LIMIT {limit}")
        compiler.compile(hot)
        templates = compiler._templates
        assert len(templates.young) + len(templates.old) <= 20
        assert any("> \0" in key for cache in (templates.young, templates.old) for key in cache)


def test_look_alikes_of_a_template_are_not_taken_for_it() -> None:
    compiler = Compiler(GOLDEN_CATALOG)
    plain = "SELECT * FROM stocks WHERE risk > 1 AND per > 2"
    commented = "SELECT * FROM stocks -- c\n WHERE per > 1"
    compiler.compile(plain)
    compiler.compile(commented)
    with pytest.raises(SqlError):
        compiler.compile("SELECT * FROM stocks WHERE risk > \0 AND per > \0")
    with pytest.raises(SqlError):  # a carriage return ends a comment as well
        compiler.compile("SELECT * FROM stocks -- c\r JOIN\n WHERE per > 1")
    assert compiler.compile(
        commented.replace("-- c", "-- c\r"),
    ) == compiler.compile(commented)


def test_the_cache_is_bounded_by_characters_too(monkeypatch: pytest.MonkeyPatch) -> None:
    """Large templates, and shapes of all of them, do not add up; what is compiled stays the same."""
    monkeypatch.setattr("tidings.sql.compiler._SKELETON_CHARACTERS_MAX", 2_000)
    compiler, sizes = Compiler(CATALOG, templates_max=40), []
    for length in range(1, 120):
        sql = f"SELECT big FROM t WHERE big IN ({', '.join(map(str, range(length)))})"
        assert compiler.compile(sql) == Compiler(CATALOG).compile(sql)
        sizes.append(compiler.nbytes)
        assert len(compiler._shapes) <= 40
    templates, parts = 100 * 2 * 2_000 + 1_000 * 40, 100 * 2 * 500 + 1_000 * 40
    assert max(sizes) <= templates + 3 * parts
