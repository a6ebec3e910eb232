"""What is packed comes back equal, for every kind of batch, also sliced, empty and with nulls."""

from dataclasses import fields

import numpy as np
import pyarrow as pa
import pytest

from tidings.model.blob import pack, unpack
from tidings.model.points import PointBatch

ROWS = pa.RecordBatch.from_pydict({"id": pa.array([1, 2, 3]), "name": pa.array(["a", None, "ü"])})
SEQ = np.array([1, 2, 3])
CHANNEL = (pa.array(["x", None, "y"]), pa.array([1, None, -(2**63)], pa.int64()))
BATCHES = {
    "points": PointBatch(
        "f",
        np.array([0, 0, 1], np.int8),
        SEQ,
        SEQ,
        pa.array(["a", "b", "a"]),
        CHANNEL,
        np.array([[1, 2], [3, 4], [5, 6]]),
        SEQ < 3,
        pa.array([b"", b"\0", b"x"]),
    ),
    "points without dimensions": PointBatch(
        "f",
        np.zeros(2, np.int8),
        SEQ[:2],
        SEQ[:2],
        pa.array(["a", "b"]),
        (),
        np.empty((2, 0), np.int64),
        SEQ[:2] > 0,
        pa.array([b"", b""]),
    ),
    "empty points": PointBatch(
        "f",
        np.empty(0, np.int8),
        SEQ[:0],
        SEQ[:0],
        pa.array([], pa.string()),
        (pa.array([], pa.int64()),),
        np.empty((0, 4), np.int64),
        SEQ[:0] > 0,
        pa.array([], pa.binary()),
    ),
}


def assert_equal(a, b):
    assert type(a) is type(b)
    if isinstance(a, np.ndarray):
        assert (a.dtype, a.shape, a.tolist()) == (b.dtype, b.shape, b.tolist())
    elif isinstance(a, tuple | list):
        assert len(a) == len(b)
        for x, y in zip(a, b, strict=True):
            assert_equal(x, y)
    elif isinstance(a, pa.RecordBatch | pa.Array):
        assert a.equals(b)
    elif hasattr(a, "__dataclass_fields__"):
        for field in fields(a):
            assert_equal(getattr(a, field.name), getattr(b, field.name))
    else:
        assert a == b


@pytest.mark.parametrize("name", BATCHES)
def test_round_trip(name):
    assert_equal(unpack(pack(BATCHES[name])), BATCHES[name])


@pytest.mark.parametrize(
    "name", [name for name, batch in BATCHES.items() if len(batch) == 3 and hasattr(batch, "take")]
)
def test_round_trip_of_a_part(name):
    part = BATCHES[name].take(np.array([2, 0]))
    assert_equal(unpack(pack(part)), part)


def test_slices_do_not_carry_the_rest():
    long = pa.array(["x" * 100] * 1000)
    blob = pack({"column": long.slice(500, 3)})
    assert unpack(blob)["column"].equals(long.slice(500, 3))
    assert len(blob) < 10_000


def test_nests_of_plain_values_and_batches():
    nest = {"rows": {"t": ROWS}, "list": [BATCHES["points"], None, 1.5, "x", b"y", True], "empty": [], "n": -(2**63)}
    back = unpack(pack(nest))
    assert_equal(back["rows"]["t"], ROWS)
    assert_equal(back["list"], nest["list"])
    assert (back["empty"], back["n"]) == ([], -(2**63))


def test_arrays_come_back_writable_for_kernels():
    array = unpack(pack(np.array([1, 2], np.int64)))
    array[0] = 5
    assert array.tolist() == [5, 2]


def test_what_cannot_be_packed_is_named():
    with pytest.raises(TypeError, match=r"object|type"):
        pack(object())
