"""Proves that silent_for's constant belongs to the shape, through the cache as well, and that intervals are read exactly."""

from __future__ import annotations

import pickle
import random
import time
from decimal import Decimal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sql_golden import CATALOG

from tidings.families.spec import Form
from tidings.model.errors import SqlError
from tidings.sql import ColumnRef, Compiler, Movement, Silence
from tidings.sql.movements.durations import MICROSECONDS, read_duration

HOUR = 3_600_000_000
SPELLINGS = [
    "(moved(price) >= {r} OR silent_for(traded) >= INTERVAL '{t} hours')",
    "(silent_for(traded) >= interval '{t}' hour or moved(price) >= {r})",
    "(INTERVAL {t} HOURS <= silent_for(traded) OR {r} <= moved(price))",
    "((moved(price) >= {r}) OR (silent_for ( stocks.traded )>=(INTERVAL '{t} hours')))",
    "(moved(price) >= {r} OR silent_for(\"traded\") >= INTERVAL '{t} hours') -- it's {r}",
]
INTEGERS = [
    "(moved(price) >= {r} OR silent_for(lots) >= {t})",
    "(silent_for(lots)>={t} OR moved(price) >= {r})",
    "({t} <= SILENT_FOR(stocks.lots) OR moved(price) >= {r})",
    "({t}<=silent_for(lots) OR moved(price) >= {r}) /* 'c */",
]
# Spaced or commented so that no template is kept: parsed each time.
UNCACHED = [
    "(moved(price) >= {r} OR silent_for(traded) >= INTERVAL   '{t} hours')",
    "(moved(price) >= {r} OR silent_for(traded) >= INTERVAL'{t} hours')",
    "(moved(price) >= {r} OR silent_for(traded) >= /* c */ INTERVAL /* d */ '{t} hours')",
    "(moved(price) >= {r} OR silent_for(traded) >= INTERVAL -- it's\n {t} hours)",
]


def statement(spelling: str, symbol: str, r: int, t: int) -> str:
    return f"SELECT * FROM stocks WHERE symbol = '{symbol}' AND {spelling.format(r=r, t=t)}"


@pytest.mark.parametrize(
    ("spelling", "column", "unit", "is_cached"),
    [(spelling, "traded", HOUR, True) for spelling in SPELLINGS]
    + [(spelling, "lots", 1, True) for spelling in INTEGERS]
    + [(spelling, "traded", HOUR, False) for spelling in UNCACHED],
)
def test_each_length_of_silence_is_a_shape_and_a_template_of_its_own(
    spelling: str, column: str, unit: int, is_cached: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    compiler = Compiler(CATALOG)
    calls: list[str] = []
    parse = compiler._parse
    monkeypatch.setattr(compiler, "_parse", lambda sql: calls.append(sql) or parse(sql))
    cases = [(symbol, r, t) for symbol in "AB" for r in (1, 2, 12) for t in (1, 2, 12)]
    random.Random(5).shuffle(cases)
    for symbol, r, t in cases:
        compiled = compiler.compile(statement(spelling, symbol, r, t))
        silence = Silence(ColumnRef("stocks", column), t * unit)
        assert compiled.shape.movement == Movement(ColumnRef("stocks", "price"), "moved", "at_least", silence)
        assert compiled.constants.equalities == ((symbol,),)
        assert compiled.constants.movement == (float(r),)
        assert compiled.shape is compiler.compile(statement(spelling, "C", 3, t)).shape
    assert len(compiler._shapes) == 3
    assert not is_cached or len(calls) == 3


def test_spellings_agree_and_differ_from_no_silence() -> None:
    compiler = Compiler(CATALOG)
    for spellings in (SPELLINGS + UNCACHED, INTEGERS):
        assert len({compiler.compile(statement(spelling, "A", 1, 5)) for spelling in spellings}) == 1
    silent = compiler.compile(statement(SPELLINGS[0], "A", 1, 5))
    plain = compiler.compile("SELECT * FROM stocks WHERE symbol = 'A' AND moved(price) >= 1")
    assert plain.shape.movement is not None and plain.shape.movement.silence is None
    assert silent.shape != plain.shape and silent.constants == plain.constants


def test_shape_travels() -> None:
    compiler = Compiler(CATALOG)
    for t in (1, 36_500 * 24):
        shape = compiler.compile(statement(SPELLINGS[0], "A", 1, t)).shape
        form = Form("any", shape)
        assert Form.from_key(form.key) == form and hash(Form.from_key(form.key).shape) == hash(shape)
        assert Form.from_key(form.key).shape.movement.silence.ticks == t * HOUR
        assert pickle.loads(pickle.dumps(shape)) == shape
        assert f"or silent_for(traded) >= {t * HOUR:,}" in shape.describe()


def test_where_points_at_the_whole_disjunction() -> None:
    sql = "SELECT * FROM stocks WHERE lots = 1 AND\n (moved(price) >= 1 OR silent_for(traded) >= INTERVAL '1 hour')"
    place = Compiler(CATALOG).compile(sql).where("movement")
    assert place == (2, 3, "moved(price) >= 1 OR silent_for(traded) >= INTERVAL '1 hour'")


def test_columns_may_be_called_interval() -> None:
    from tidings.sql import parse_catalog

    compiler = Compiler(parse_catalog('CREATE TABLE t ("interval" BIGINT PRIMARY KEY, hour INT, silent_for INT)'))
    compiled = compiler.compile("SELECT * FROM t WHERE interval = 5 AND hour > 1 AND silent_for < 2")
    assert [ref.column for ref in compiled.shape.equalities + compiled.shape.ranges] == [
        "interval",
        "hour",
        "silent_for",
    ]


@given(
    st.lists(
        st.tuples(st.decimals(0, 999, places=3), st.sampled_from(list(MICROSECONDS)), st.sampled_from(["", "s", "S"])),
        min_size=1,
        max_size=4,
    )
)
@settings(max_examples=60, deadline=None)
def test_intervals_are_exact(parts: list[tuple[Decimal, str, str]]) -> None:
    total = sum(number * MICROSECONDS[unit] for number, unit, _ in parts)
    text = " ".join(f"{number} {unit}{plural}" for number, unit, plural in parts)
    if total == int(total) and 0 < total <= 36_500 * MICROSECONDS["day"]:
        assert read_duration(text) == read_duration(f"  {text.upper()}  ") == total
    else:
        with pytest.raises(ValueError):
            read_duration(text)


@pytest.mark.parametrize(
    "text",
    [
        "silent_for(" * 5_900,
        'silent_for("' * 5_400,
        "silent_for(" + '"' * 60_000,
        "silent_for(" + "a " * 30_000,
        "moved(price) >= 1 OR silent_for(lots) >= " + "9" * 60_000,
        "9" * 60_000 + " <= silent_for(lots)",
        "1 " * 30_000 + "<= silent_for(lots)",
        "(moved(price) >= 1 OR silent_for(traded) >= INTERVAL '" + "9" * 60_000 + " hours')",
        "(moved(price) >= 1 OR silent_for(traded) >= INTERVAL '" + "1 hour " * 9_000 + "x')",
        "interval '" * 6_000 + "silent_for",
        " OR ".join(["silent_for(lots) >= 1"] * 2_500),
    ],
)
def test_oversized_silences_are_refused_in_time(text: str) -> None:
    started = time.perf_counter()
    with pytest.raises(SqlError):
        Compiler(CATALOG).compile(f"SELECT * FROM stocks WHERE {text}")
    assert time.perf_counter() - started < 5
