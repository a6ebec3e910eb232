"""A table store behaves like a dict of rows, for any cut into batches and however often dead rows are swept out."""

import datetime as dt

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.model.catalog import Column, Table
from tidings.model.change import ChangeBatch, Op
from tidings.model.codes import codes_of
from tidings.model.types import ColumnType
from tidings.pipeline import table_store as store_module
from tidings.pipeline.table_store import TableStore

TABLE = Table("t", (Column("id", ColumnType.INT), Column("v", ColumnType.TEXT)), ("id",))
operations = st.lists(
    st.lists(st.tuples(st.sampled_from(list(Op)), st.integers(0, 3), st.none() | st.sampled_from("xyz")), max_size=8),
    max_size=8,
)


def batch_of(operations, table=TABLE):
    rows = [{"id": key, "v": None if op is Op.DELETE else value} for op, key, value in operations]
    columns = [pa.array([row[name] for row in rows], table.schema.field(name).type) for name in ("id", "v")]
    count = len(operations)
    return ChangeBatch(
        "t",
        np.arange(count),
        np.arange(1, count + 1),
        np.array([op for op, _, _ in operations], np.int8),
        pa.RecordBatch.from_arrays(columns, schema=table.schema),
    )


class Model:
    def __init__(self):
        self.rows = {}

    def apply(self, operations):
        """(images, refused places)"""
        images, refused = [], []
        for place, (op, key, value) in enumerate(operations):
            if key in self.rows if op is Op.INSERT else key not in self.rows and op is not Op.UPSERT:
                refused.append(place)
                continue
            before = self.rows.get(key)
            after = None if op is Op.DELETE else {"id": key, "v": value}
            images.append((place + 1, before, after))
            if after is None:
                del self.rows[key]
            else:
                self.rows[key] = after
        return images, refused


def images_of(changes):
    before = [row if had else None for row, had in zip(changes.before.to_pylist(), changes.had, strict=True)]
    after = [row if has else None for row, has in zip(changes.after.to_pylist(), changes.has, strict=True)]
    return list(zip(changes.seq.tolist(), before, after, strict=True))


def by_id(rows):
    return sorted(rows, key=lambda row: row["id"])


@pytest.mark.parametrize("sweep_at", [0, 3, 65_536])
@given(batches=operations, codes_early=st.booleans())
def test_a_store_is_a_dict(sweep_at, batches, codes_early):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(store_module, "_SWEEP_DEAD_MIN", sweep_at)
        store, model = TableStore(TABLE), Model()
        for operations in batches:
            changes, refused = store.apply(batch_of(operations))
            images, refused_places = model.apply(operations)
            assert images_of(changes) == images
            assert [place for place, _ in refused] == refused_places
            assert all(repr(operations[place][1]) in reason and "'t'" in reason for place, reason in refused)
            assert len(store) == len(model.rows) == int(store.alive.sum())
            if codes_early:
                check_codes(store)
        assert by_id(store.rows().to_pylist()) == by_id(model.rows.values())
        check_codes(store)


def check_codes(store):
    positions = np.arange(len(store.alive))
    rows = store.take(positions)
    for column in TABLE.columns:
        codes, valid = store.codes(column.name)
        expected, expected_valid = codes_of(column.type, rows.column(column.name))
        assert valid.tolist() == expected_valid.tolist()
        assert codes[valid].tolist() == expected[valid].tolist()


@given(operations, st.integers(0, 8))
def test_replay_and_load_give_the_same_rows(batches, cut):
    store = TableStore(TABLE)
    for operations in batches:
        store.apply(batch_of(operations))
    copy = TableStore(TABLE)
    for operations in batches[:cut]:
        copy.replay(batch_of(operations))
    loaded = TableStore(TABLE)
    loaded.load(copy.rows())
    for operations in batches[cut:]:
        loaded.replay(batch_of(operations))
    assert by_id(loaded.rows().to_pylist()) == by_id(store.rows().to_pylist())


def test_several_changes_to_one_key_in_one_batch_each_see_the_one_before():
    store = TableStore(TABLE)
    ops = [(Op.INSERT, 1, "x"), (Op.UPDATE, 1, "y"), (Op.DELETE, 1, None), (Op.INSERT, 1, "z")]
    changes, refused = store.apply(batch_of(ops))
    assert refused == []
    assert [before and before["v"] for _, before, _ in images_of(changes)] == [None, "x", "y", None]
    assert store.rows().to_pylist() == [{"id": 1, "v": "z"}]


def test_an_empty_store_has_no_rows():
    store = TableStore(TABLE)
    assert store.rows().to_pylist() == []
    assert store.take(np.array([-1, -1])).to_pylist() == [{"id": None, "v": None}] * 2


@pytest.mark.parametrize(
    ("type", "keys"),
    [
        (ColumnType.TEXT, ["a", "b"]),
        (ColumnType.BOOLEAN, [True, False]),
        (ColumnType.DATE, [dt.date(1, 1, 1), dt.date(9999, 12, 31)]),
        (ColumnType.TIMESTAMP, [dt.datetime(1969, 1, 1), dt.datetime(2024, 1, 1, 0, 0, 0, 1)]),
        (ColumnType.BIGINT, [2**63 - 1, -(2**63)]),
    ],
)
def test_keys_of_every_type(type, keys):
    table = Table("t", (Column("id", type), Column("v", ColumnType.TEXT)), ("id",))
    store = TableStore(table)
    first, second = keys
    store.apply(batch_of([(Op.INSERT, first, "x"), (Op.INSERT, second, "y")], table))
    changes, refused = store.apply(batch_of([(Op.UPDATE, second, "z"), (Op.INSERT, first, "w")], table))
    assert changes.before.to_pylist() == [{"id": second, "v": "y"}]
    assert [place for place, _ in refused] == [1]


def test_a_key_of_two_columns():
    table = Table("t", TABLE.columns, ("id", "v"))
    store = TableStore(table)
    _, refused = store.apply(batch_of([(Op.INSERT, 1, "x"), (Op.INSERT, 1, "y"), (Op.INSERT, 1, "x")], table))
    assert [place for place, _ in refused] == [2]
    assert len(store) == 2
