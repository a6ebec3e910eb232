"""Rendered rows are JSON that parses back to the very values."""

import base64
import datetime as dt
import json

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.quarantine import Quarantined, raw_text
from tidings.model.render import render_rows, value_texts
from tidings.testing.plain import to_json

VALUES = {
    "big": (pa.int64(), st.integers(-(2**63), 2**63 - 1)),
    "small": (pa.int32(), st.integers(-(2**31), 2**31 - 1)),
    "double": (pa.float64(), st.floats(allow_nan=False, allow_infinity=False)),
    "text": (pa.string(), st.text(st.characters(codec="utf-8"))),
    "is_open": (pa.bool_(), st.booleans()),
    "day": (pa.date32(), st.dates()),
    "moment": (pa.timestamp("us"), st.datetimes()),
    "data": (pa.binary(), st.binary()),
}
rows_of_values = st.lists(st.fixed_dictionaries({name: st.none() | values for name, (_, values) in VALUES.items()}))


@given(rows_of_values)
def test_rows_parse_back_equal(rows):
    names = list(VALUES)
    columns = [pa.array([row[name] for row in rows], VALUES[name][0]) for name in names]
    rendered = render_rows(names, columns, len(rows))
    parsed = [json.loads(line) for line in rendered]
    assert parsed == [{name: to_json(row[name]) for name in names} for row in rows]
    assert [list(row) for row in parsed] == [names] * len(rows)
    assert not any("\n" in line for line in rendered)


def test_forms_of_values():
    moment = dt.datetime(2024, 2, 29, 12, 30)
    columns = [pa.array([1.0]), pa.array([moment], pa.timestamp("us")), pa.array([b"\xff"]), pa.array(['"\n'])]
    line = render_rows(["d", "m", "x", 'a "name"'], columns, 1)
    assert line == ['{"d": 1.0, "m": "2024-02-29T12:30:00", "x": "/w==", "a \\"name\\"": "\\"\\n"}']
    assert base64.b64decode(json.loads(line[0])["x"]) == b"\xff"


def test_rows_without_columns_are_empty_objects():
    assert render_rows([], [], 2) == ["{}", "{}"]


def test_a_quarantined_record_is_one_line_of_json():
    entry = Quarantined("changes", 4, None, 'not "JSON"\n', raw_text(b"\xff\xfe\n\xc3\xbc"))
    assert json.loads(entry.line()) == {
        "seq": None,
        "reason": 'not "JSON"\n',
        "raw": "\\xff\\xfe\nü",
        "source": "changes",
        "line": 5,
    }
    assert "\n" not in entry.line()


@given(
    st.lists(
        st.one_of(
            st.floats(1e-3, 1e15, exclude_max=True),
            st.floats(-1e15, -1e-3, exclude_min=True),
            st.sampled_from([0.0, -0.0, 1e-3, 0.1, 1.0, 123456.0, 999999999999999.9]),
        )
    ),
    st.lists(st.one_of(st.none(), st.floats(allow_nan=False, allow_infinity=False)), max_size=2),
)
def test_doubles_are_written_as_python_writes_them(ordinary: list[float], others: list[float | None]) -> None:
    values = [*ordinary, *others]
    expected = ["null" if value is None else repr(value) for value in values]
    assert value_texts(pa.array(values, pa.float64())) == expected
