"""Codes keep the order of values, leave no room between neighbours, and come out the same one by one and by column."""

import datetime as dt
import math

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tidings.model.codes import CODE_MAX, CODE_MIN, code_of, codes_of
from tidings.model.types import ColumnType

VALUES = {
    ColumnType.BIGINT: st.integers(-(2**63), 2**63 - 1),
    ColumnType.INT: st.integers(-(2**31), 2**31 - 1),
    ColumnType.DOUBLE: st.floats(allow_nan=False, allow_infinity=False),
    ColumnType.BOOLEAN: st.booleans(),
    ColumnType.DATE: st.dates(),
    ColumnType.TIMESTAMP: st.datetimes(),
    ColumnType.TEXT: st.text(st.characters(codec="utf-8"), max_size=12),
}
EXACT = [type for type in VALUES if type is not ColumnType.TEXT]
types = pytest.mark.parametrize("type", VALUES, ids=lambda type: type.value)
exact_types = pytest.mark.parametrize("type", EXACT, ids=lambda type: type.value)


@exact_types
@given(data=st.data())
def test_exact_codes_compare_as_values_do(type, data):
    a, b = data.draw(VALUES[type]), data.draw(VALUES[type])
    assert (code_of(type, a) < code_of(type, b)) == (a < b)
    assert (code_of(type, a) == code_of(type, b)) == (a == b)


@given(VALUES[ColumnType.TEXT], VALUES[ColumnType.TEXT])
@example("prefix08", "prefix08a")
@example("", "\0")
@example("\x7f", "\x80")
@example("\ud7ff", "\U0001d11e")
def test_text_codes_never_contradict_the_order(a, b):
    if a < b:
        assert code_of(ColumnType.TEXT, a) <= code_of(ColumnType.TEXT, b)
    if a.encode()[:8].ljust(8, b"\0") != b.encode()[:8].ljust(8, b"\0"):
        assert (code_of(ColumnType.TEXT, a) < code_of(ColumnType.TEXT, b)) == (a < b)


@types
@given(data=st.data())
def test_codes_fit_int64(type, data):
    assert CODE_MIN <= code_of(type, data.draw(VALUES[type])) <= CODE_MAX


@given(VALUES[ColumnType.DOUBLE])
@example(0.0)
@example(-0.0)
@example(-5e-324)
@example(1.7976931348623157e308)
def test_the_next_double_has_the_next_code(value):
    above = math.nextafter(value, math.inf)
    if math.isfinite(above):
        # Below zero one code is free: the bit pattern of -0.0, which is coded as 0.0.
        step = 2 if value == -5e-324 else 1
        assert code_of(ColumnType.DOUBLE, above) == code_of(ColumnType.DOUBLE, value) + step


@given(st.datetimes(max_value=dt.datetime(9999, 12, 31)))
def test_the_next_microsecond_has_the_next_code(value):
    above = value + dt.timedelta(microseconds=1)
    assert code_of(ColumnType.TIMESTAMP, above) == code_of(ColumnType.TIMESTAMP, value) + 1


@given(st.dates())
def test_a_date_has_the_code_of_its_midnight(day):
    midnight = dt.datetime.combine(day, dt.time())
    assert code_of(ColumnType.DATE, day) == code_of(ColumnType.TIMESTAMP, midnight)


def test_zero_has_one_code():
    assert code_of(ColumnType.DOUBLE, -0.0) == code_of(ColumnType.DOUBLE, 0.0) == 0


@pytest.mark.parametrize("value", [CODE_MIN, CODE_MIN + 1, -1, 0, 2**53 + 1, CODE_MAX - 1, CODE_MAX])
def test_integers_stand_for_themselves_to_the_ends(value):
    codes, valid = codes_of(ColumnType.BIGINT, pa.array([value], pa.int64()))
    assert code_of(ColumnType.BIGINT, value) == value == codes[0]
    assert valid.all()


@types
@given(data=st.data())
def test_a_column_is_coded_as_its_values_are(type, data):
    values = data.draw(st.lists(st.none() | VALUES[type], max_size=8))
    skipped = data.draw(st.integers(0, len(values)))
    column = pa.array(values, type.arrow).slice(skipped)
    codes, valid = codes_of(type, column)
    assert codes.dtype == np.int64
    assert valid.tolist() == [value is not None for value in values[skipped:]]
    kept = [value for value in values[skipped:] if value is not None]
    assert codes[valid].tolist() == [code_of(type, value) for value in kept]


@pytest.mark.parametrize("type", [ColumnType.BINARY, ColumnType.POINT, ColumnType.BOX])
def test_types_without_order_have_no_codes(type):
    with pytest.raises(TypeError, match=type.value):
        code_of(type, b"")
