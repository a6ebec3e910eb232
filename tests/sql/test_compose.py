"""Proves that a template put together from parts is the one that a parse of the whole makes, and that parts are really used."""

from __future__ import annotations

from collections.abc import Iterable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy
from sql_golden import CATALOG as GOLDEN_CATALOG
from sql_golden import cases
from sql_predicates import CATALOG, boolean_expressions, conditions, predicates
from sqlglot.parser import Parser
from sqlglot.tokens import Tokenizer

from tidings.model.catalog import Catalog
from tidings.model.errors import SqlError
from tidings.sql import Compiler, Statement, parse_catalog
from tidings.sql.compose import Composer, taken_apart
from tidings.sql.conditions import ConditionCompiler
from tidings.sql.fingerprint import Cut
from tidings.sql.generations import Generations
from tidings.testing import offers_inputs
from tidings.testing.join_inputs import CHAIN, PAIR, join_queries
from tidings.testing.offers_inputs import OFFERS_CATALOGS, constraints
from tidings.testing.select_inputs import SELECT_CATALOG, SMALL_CATALOGS, select_queries
from tidings.testing.topk_inputs import CATALOGS as TOPK_CATALOGS
from tidings.testing.topk_inputs import topk_queries


class CountingCompiler(Compiler):
    """Counts whole parses and templates of parts."""

    parsed = composed = 0

    def _parse(self, sql):
        self.parsed += 1
        return super()._parse(sql)

    def _composed(self, cut: Cut):
        template = super()._composed(cut)
        self.composed += template is not None
        return template

    def forget_templates(self) -> None:
        """Forgets what was compiled, and keeps the parts: each text is new again."""
        self._templates = Generations(10_000, 1_000_000)


def outcome(compiler: Compiler | ConditionCompiler, sql: str) -> tuple[object, ...]:
    try:
        statement = compiler.compile(sql)
    except SqlError as error:
        return str(error), error.problem, error.line, error.column, error.construct, error.hint
    # Constants as texts, too: 1, 1.0 and TRUE are equal to Python.
    return statement, repr(statement.constants)


def check_composed(catalog: Catalog, statements: Iterable[str]) -> CountingCompiler:
    """Compiles one after the other, several times, with parts that are noted, parsed and known in turn."""
    expected = [(sql, outcome(Compiler(catalog, templates_max=0), sql)) for sql in statements]
    compiler = CountingCompiler(catalog)
    for _ in range(4):
        for sql, wanted in expected:
            assert outcome(compiler, sql) == wanted
            assert outcome(compiler, sql) == wanted
        compiler.forget_templates()
    return compiler


def several(statements: SearchStrategy[str]) -> SearchStrategy[list[str]]:
    return st.lists(statements, min_size=1, max_size=4)


QUERIES: list[tuple[str, SearchStrategy[str]]] = [
    *[(sql, select_queries(parse_catalog(sql))) for sql in (*SMALL_CATALOGS, SELECT_CATALOG)],
    *[(sql, offers_inputs._queries(parse_catalog(sql).table("market"))) for sql in OFFERS_CATALOGS],
    *[(sql, topk_queries(parse_catalog(sql))) for sql in TOPK_CATALOGS],
    *[(sql, join_queries(sql)) for sql in (PAIR, CHAIN)],
]


@given(st.sampled_from(QUERIES).flatmap(lambda entry: st.tuples(st.just(parse_catalog(entry[0])), several(entry[1]))))
@settings(max_examples=40, deadline=None)
def test_queries_of_all_families(given: tuple[Catalog, list[str]]) -> None:
    check_composed(*given)


@given(st.sampled_from(OFFERS_CATALOGS), st.data())
@settings(max_examples=25, deadline=None)
def test_constraints_that_stand_alone(catalog_sql: str, data: st.DataObject) -> None:
    catalog = parse_catalog(catalog_sql)
    table = catalog.table("market")
    texts = data.draw(several(constraints(table)))
    warm = ConditionCompiler(catalog, table)
    for text in texts * 3:
        warm._compiler._templates = Generations(100, 100_000)
        assert outcome(warm, text) == outcome(ConditionCompiler(catalog, table), text)


@st.composite
def spelled(draw: DrawFn) -> str:
    """Statements whose atoms meet AND, OR and parentheses in all spellings, and whose heads and tails vary."""
    head = draw(st.sampled_from(["SELECT *", "SELECT id, t.big", 'select "id"', "SELECT\n\tt.*"]))
    origin = draw(st.sampled_from(["FROM t", " from t", "FROM t AS t", 'FROM "t"', "FROM t x"]))
    gap = st.sampled_from([" ", " ", " ", "\n", "  ", " /* AND 'x' */ ", " -- OR (\n"])
    text = f"{head} {origin}{draw(gap)}{draw(st.sampled_from(['WHERE', 'where']))}"
    atoms = draw(st.lists(st.one_of(predicates(), predicates(("big", "name", "flag"))), min_size=1, max_size=4))
    opened = 0
    for number, atom in enumerate(atoms):
        text += draw(gap)
        if number:
            text += draw(st.sampled_from(["AND", "AND", "and", "OR", "Or", "AND NOT", "AND(NOT", "OR("])) + draw(gap)
            opened += text.rstrip().endswith(("(NOT", "OR("))
        wrap = draw(st.sampled_from(["{}", "{}", "{}", "({})", "( {} )", "(({}))", "NOT {}", "({}"]))
        opened += wrap == "({}"
        text += wrap.format(atom)
        if opened and draw(st.booleans()):
            text += ")"
            opened -= 1
    return (
        text
        + ")" * opened
        + draw(st.sampled_from(["", "", "", " ", ";", " ORDER BY big DESC LIMIT 3", "\norder by id limit 12 ;"]))
    )


@given(several(st.one_of(spelled(), boolean_expressions.map("SELECT * FROM t WHERE {}".format))))
@settings(max_examples=40, deadline=None)
def test_all_spellings(statements: list[str]) -> None:
    check_composed(CATALOG, statements)


ODD_WORDS = [
    *("lots = 1", "sector = 'a'", "per > 1.5", "active", "stocks.per < 2", "rank BETWEEN 1 AND 2", "lots IS NULL") * 4,
    *("AND", "OR", "(", ")", "NOT") * 6,
    *(
        "lots BETWEEN 1 2",
        "per > 1and lots = 2",
        "per > 1or lots = 2",
        "'x'or active",
        "'a'AND",
        "stocks.and = 1",
        ". or",
    ),
    *(
        "BETWEEN",
        "5.",
        "IN (1, 2)",
        "lots IN",
        "NULL",
        "IS",
        "moved(price) >= 1",
        ";",
        "WHERE",
        "FROM",
        "ORDER BY per LIMIT 3",
    ),
    *(
        '"per" > 1',
        '"or" = 1',
        '"',
        "-- x\n",
        "/* AND */",
        "CASE WHEN active",
        "END",
        "stocks.",
        "LIMIT 5",
        "\0",
        "\1",
        "5",
        ",",
    ),
]
ODD_HEADS = [
    "SELECT * FROM stocks WHERE",
    "SELECT * FROM stocks WHERE lots = 1 AND",
    "SELECT symbol FROM stocks s where",
    "SELECT * FROM stocks 5 WHERE",
    "SELECT stocks.where FROM stocks WHERE",
    "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE",
    "SELECT * FROM stocks JOIN reviews ON stocks.symbol = reviews.symbol AND active WHERE",
    "SELECT * FROM stocks JOIN reviews ON stocks.symbol = reviews.symbol AND lots > 3 WHERE",
]


@given(
    several(
        st.tuples(st.sampled_from(ODD_HEADS), st.lists(st.sampled_from(ODD_WORDS), min_size=1, max_size=7)).map(
            lambda words: " ".join([words[0], *words[1]])
        )
    )
)
@settings(max_examples=40, deadline=None)
def test_odd_texts(statements: list[str]) -> None:
    check_composed(GOLDEN_CATALOG, statements)


@given(several(conditions.map(" AND ".join)), st.text("'\"-/*1 a.e\n;x=()", max_size=8), st.integers(0, 200))
@settings(max_examples=35, deadline=None)
def test_damaged_texts_beside_good_ones(texts: list[str], damage: str, at: int) -> None:
    good = [f"SELECT * FROM t WHERE {text}" for text in texts]
    broken = [sql[: at % len(sql)] + damage + sql[at % len(sql) :] for sql in good]
    check_composed(CATALOG, [*good, *broken])


@pytest.mark.parametrize("name", ["accepted.txt", "refused.txt"])
def test_golden_statements(name: str) -> None:
    compiler = check_composed(GOLDEN_CATALOG, [sql for sql, _ in cases(name)])
    assert compiler.composed > (300 if name == "accepted.txt" else 50)


def compiled(compiler: Compiler, *statements: str) -> list[Statement]:
    return [compiler.compile(sql) for sql in statements]


KNOWN = [
    "SELECT * FROM stocks WHERE sector = 'a' AND per BETWEEN 1 AND 2",
    "SELECT * FROM stocks WHERE sector = 'b' AND lots IN (1, 2, 3)",
    "SELECT * FROM stocks WHERE per BETWEEN 1 AND 3 AND lots IN (4, 5, 6)",
    "SELECT * FROM stocks WHERE rank <> 1 AND per BETWEEN 1 AND 2",
    "SELECT * FROM stocks WHERE rank <> 1 AND lots IN (1, 2, 3)",
]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM stocks WHERE lots IN (1, 2, 3) AND per BETWEEN 1 AND 2 AND sector = 'c'",
        "SELECT * FROM stocks WHERE sector = 'a' AND sector = 'b'",
        "SELECT * FROM stocks WHERE per BETWEEN 1 AND 2 OR sector = 'a' AND rank <> 4",
        "SELECT * FROM stocks WHERE (sector = 'a' OR lots IN (1, 2, 3)) AND (per BETWEEN 1 AND 2)",
        "SELECT * FROM stocks WHERE rank <> 1 AND rank <> 2 and rank <> 3",
        "SELECT * FROM stocks WHERE sector = 'it''s AND OR (' AND rank <> 7",
        "SELECT * FROM stocks WHERE sector = 'a' -- only\n AND /* 1 */ rank <> 7",
        "SELECT symbol FROM stocks WHERE sector = 'a'",
        "SELECT * FROM stocks WHERE sector = 'a' AND rank <> 5 ORDER BY price DESC LIMIT 7",
        "SELECT * FROM stocks WHERE sector = 'a' AND active",
    ],
)
def test_statements_of_known_parts_are_not_parsed(sql: str) -> None:
    compiler = CountingCompiler(GOLDEN_CATALOG)
    compiled(compiler, *KNOWN)
    parsed, composed = compiler.parsed, compiler.composed
    assert compiler.compile(sql) == Compiler(GOLDEN_CATALOG, templates_max=0).compile(sql)
    assert (compiler.parsed, compiler.composed) == (parsed, composed + 1)


def test_nearly_all_statements_over_many_columns_are_composed() -> None:
    names = [f"c{number}" for number in range(30)]
    catalog = parse_catalog(f"CREATE TABLE t (id BIGINT PRIMARY KEY, {', '.join(f'{name} DOUBLE' for name in names)})")
    compiler = CountingCompiler(catalog)
    signs = ["=", "<", ">=", "<>"]
    for number in range(2_000):
        one, other = names[number % 30], names[number * 7 % 29]
        sign, other_sign = signs[number % 4], signs[number // 30 % 4]
        sql = f"SELECT * FROM t WHERE {one} {sign} {number} AND ({other} {other_sign} 1.5 OR id = {number})"
        compiler.compile(sql)
    assert compiler.parsed < 100 < 1_000 < compiler.composed


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT * FROM stocks WHERE moved(price) >= 5 AND sector = 'a'",
        "SELECT * FROM stocks WHERE (moved(price) >= 5 OR silent_for(lots) >= 7) AND sector = 'a'",
        "SELECT * FROM stocks JOIN reviews ON stocks.symbol = reviews.symbol AND lots > 3 WHERE sector = 'a'",
        "SELECT * FROM stocks JOIN reviews ON stocks.symbol = reviews.symbol AND active WHERE sector = 'a'",
        "SELECT * FROM stocks WHERE " + " AND ".join(["sector = 'a'"] * 65),
        "SELECT * FROM stocks WHERE " + "(" * 21 + "sector = 'a'" + ")" * 21,
        "SELECT * FROM stocks",
    ],
)
def test_the_unusual_is_parsed_as_a_whole(sql: str) -> None:
    compiler = check_composed(GOLDEN_CATALOG, [sql])
    assert (compiler.parsed, compiler.composed) == (4, 0)


def test_a_literal_of_the_wrong_kind_spoils_no_part() -> None:
    compiler = CountingCompiler(GOLDEN_CATALOG)
    for _ in range(5):
        with pytest.raises(SqlError):
            compiler.compile("SELECT * FROM stocks WHERE per > 'a' AND sector = 5")
    compiled(compiler, *["SELECT * FROM stocks WHERE per > 1 AND sector = 'a'"] * 2)
    compiler.forget_templates()
    compiler.compile("SELECT * FROM stocks WHERE sector = 'a' AND per > 1")
    assert compiler.composed == 1


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("a = \0 AND b BETWEEN \0 AND \0 and c", [["a = \0", "b BETWEEN \0 AND \0", "c"]]),
        ("a = \0 OR b AND c", [["a = \0"], ["b", "c"]]),
        ("(a OR b) AND ((c))", [[[["a"], ["b"]], [[[["c"]]]]]]),
        ("(a) > \0 AND NOT (b OR c)", [["(a) > \0", "NOT (b OR c)"]]),
        ("within(x, box(\0, \0, \0, \0))AND(b)", [["within(x, box(\0, \0, \0, \0))", [["b"]]]]),
        ('"or" = \0 AND t . and = \0 AND or_and', [['"or" = \0', "t . and = \0", "or_and"]]),
        ("a BETWEEN (\0) AND (\0) OR b", [["a BETWEEN (\0) AND (\0)"], ["b"]]),
    ],
)
def test_a_clause_is_taken_apart(text: str, where: list[object]) -> None:
    for tail in ("", " ORDER BY a LIMIT 5", " ;"):
        parts = taken_apart(f"SELECT a FROM t WHERE {text}{tail}")
        assert parts is not None
        assert (parts.head, parts.origin, parts.where, parts.tail) == ("SELECT a FROM t", "FROM t", where, tail.strip())


@pytest.mark.parametrize("text", ["", "AND a", "a AND", "a OR OR b", "(a", "a)", "()", "(a) AND (b", "a AND (b; c)"])
def test_a_clause_with_a_gap_is_not_taken_apart(text: str) -> None:
    assert taken_apart(f"SELECT a FROM t WHERE {text}") is None


def test_literals_outside_of_where_are_not_taken_apart() -> None:
    assert taken_apart("SELECT a FROM t \0 WHERE a") is None
    assert taken_apart("SELECT a FROM t WHERE a ORDER BY a LIMIT \0") is None


def test_the_parser_knows_no_other_connectives() -> None:
    """What the cuts rely on: words end where ours do, and AND and OR alone join conditions."""
    assert [token.name for token in Parser.CONJUNCTION] == ["AND"]
    assert [token.name for token in Parser.DISJUNCTION] == ["OR"]
    words = {word for keyword in Tokenizer.KEYWORDS if " " in keyword for word in keyword.split()}
    assert words & {"FROM", "WHERE", "AND", "OR", "BETWEEN"} == set()
    assert [keyword for keyword in Tokenizer.KEYWORDS if "ORDER" in keyword.split()] == ["ORDER BY"]


def test_parts_are_bounded_by_number_and_characters() -> None:
    for parts_max, characters_max in ((20, 100_000), (10_000, 2_000)):
        composer = Composer(CATALOG, parts_max, characters_max)
        for number in range(200):
            for name in ("big", "small", "real1"):
                values = ", ".join(["\0"] * (1 + number % 50))
                composer.template(Cut(f"SELECT id FROM t WHERE {name} IN ({values})", ["1"] * (1 + number % 50)))
                caches = (composer._frames, composer._atoms, composer._placed)
                assert all(len(cache.young) + len(cache.old) <= parts_max for cache in caches)
        assert 0 < composer.nbytes <= 3 * (2 * 100 * min(characters_max, 4_000) + 1_000 * min(parts_max, 400))
