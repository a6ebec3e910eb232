"""What many changes come to: from what each row was first to what it is at last."""

import numpy as np
import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from research.stages.net_changes import net_of
from tidings.model.change import TableChanges

SCHEMA = pa.schema([("a", pa.int64()), ("b", pa.string()), ("v", pa.float64())])
keys = st.tuples(st.integers(0, 2), st.sampled_from(["x", "y"]))


def rows_of(rows):
    return pa.RecordBatch.from_pylist(
        [dict(zip(SCHEMA.names, row or (None,) * 3, strict=True)) for row in rows], SCHEMA
    )


def changes_of(steps):
    """Each step gives a row (by its key) a new value, or none."""
    rows, before, after = {}, [], []
    for key, value in steps:
        if value is None and key not in rows:
            continue
        before.append((*key, rows[key]) if key in rows else None)
        after.append(None if value is None else (*key, value))
        rows.pop(key, None) if value is None else rows.update({key: value})
    had, has = (np.array([row is not None for row in side], np.bool_) for side in (before, after))
    return TableChanges("t", np.arange(1, len(had) + 1), had, rows_of(before), has, rows_of(after)), rows


@given(st.lists(st.tuples(keys, st.none() | st.floats(0, 2)), max_size=30))
def test_net_changes_lead_to_the_same_rows_one_step_each(steps):
    changes, expected = changes_of(steps)
    net = net_of(changes, ["a", "b"])
    before = dict.fromkeys(expected)
    for (a, b, _), has in zip(zip(*net.after.to_pydict().values(), strict=True), net.has, strict=True):
        assert not has or before.pop((a, b)) is None, "a row once"
    assert before == {}
    there = [row for row, has in zip(net.after.to_pylist(), net.has, strict=True) if has]
    assert {(row["a"], row["b"]): row["v"] for row in there} == expected
    # All rows are new here: what is gone at the end was never there.
    assert not net.had.any()
    assert net.has.all()
    assert (np.diff(net.seq) > 0).all()


@given(st.lists(st.tuples(keys, st.none() | st.floats(0, 2)), max_size=30), st.integers(0, 30))
def test_old_images_are_those_before_the_first_step(steps, start):
    changes, _ = changes_of(steps)
    later = changes.slice(min(start, len(changes)), len(changes))
    net = net_of(later, ["a", "b"])
    olds = {}
    for before, after in zip(later.before.to_pylist(), later.after.to_pylist(), strict=True):
        known = before if before["a"] is not None else after
        olds.setdefault((known["a"], known["b"]), before)
    for before, after in zip(net.before.to_pylist(), net.after.to_pylist(), strict=True):
        known = before if before["a"] is not None else after
        assert olds[known["a"], known["b"]] == before
