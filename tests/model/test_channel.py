"""Channels group exactly the rows with equal components, nulls included as components of their own."""

import datetime as dt

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.channel import channel_column, channel_columns, channel_component, channel_type, group_channels
from tidings.model.types import ColumnType

keys = st.tuples(
    st.none() | st.sampled_from(["", "a", "b", "prefix08a", "prefix08b"]),
    st.none() | st.sampled_from([0, 1, 2**62 + 1, 2**62 + 2, -(2**63), 2**63 - 1]),
)
TYPES = (pa.string(), pa.int64())


@given(st.lists(keys))
def test_rows_are_grouped_by_all_their_components(rows):
    columns = channel_columns(TYPES, rows)
    group, distinct = group_channels(columns, len(rows))
    assert [distinct[number] for number in group.tolist()] == rows
    assert sorted(distinct, key=repr) == sorted(set(rows), key=repr)


@given(st.lists(keys.map(lambda key: key[1:])))
def test_one_component(rows):
    group, distinct = group_channels(channel_columns(TYPES[1:], rows), len(rows))
    assert [distinct[number] for number in group.tolist()] == rows


def test_without_components_all_rows_are_on_one_channel():
    group, distinct = group_channels([], 3)
    assert (group.tolist(), distinct) == ([0, 0, 0], [()])
    group, distinct = group_channels([], 0)
    assert (group.tolist(), distinct) == ([], [])


@pytest.mark.parametrize(
    ("type", "values"),
    [
        (ColumnType.TEXT, ["a", "", "ü"]),
        (ColumnType.BIGINT, [2**63 - 1, 0, -1]),
        (ColumnType.DOUBLE, [0.0, -1.5, 1e300]),
        (ColumnType.BOOLEAN, [True, False, True]),
        (ColumnType.DATE, [dt.date(2024, 2, 29), dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
        (ColumnType.TIMESTAMP, [dt.datetime(2024, 1, 1), dt.datetime(1969, 1, 1), dt.datetime(1970, 1, 1)]),
    ],
)
def test_components_of_a_column_are_those_of_its_values(type, values):
    column, valid = channel_column(type, pa.array([*values, None], type.arrow))
    assert valid.tolist() == [True, True, True, False]
    assert column.type == channel_type(type)
    assert column.to_pylist()[:3] == [channel_component(type, value) for value in values]
