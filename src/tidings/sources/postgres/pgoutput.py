"""Messages of PostgreSQL's logical replication (plugin `pgoutput`, protocol version 1), decoded. No I/O.

A transaction is `Begin`, changes, `Commit`; a `Relation` comes before the first change of a table and after its columns
changed. Values are texts, as the server prints them.
"""

from __future__ import annotations

import datetime as dt
from collections.abc import Callable
from enum import Enum
from struct import Struct
from typing import NamedTuple

_EPOCH = dt.datetime(2000, 1, 1, tzinfo=dt.UTC)
_BEGIN = Struct(">QqI")
_COMMIT = Struct(">BQQq")
_I16, _I32 = Struct(">h"), Struct(">i")
_ATTRIBUTE = Struct(">Ii")
_TRUNCATE = Struct(">iB")


class Unchanged(Enum):
    """Stands for a large value, kept outside of its row (TOAST), that an update left as it was: it is not sent."""

    UNCHANGED = "unchanged"


UNCHANGED = Unchanged.UNCHANGED
Value = str | None | Unchanged
Tuple = tuple[Value, ...]


class Begin(NamedTuple):
    xid: int
    """The lower 32 bits of the transaction's id."""


class Commit(NamedTuple):
    end_lsn: int
    """Position behind the commit in the log: rises from transaction to transaction."""
    time: dt.datetime


class RelationColumn(NamedTuple):
    name: str
    type: int
    """Oid of its type."""


class Relation(NamedTuple):
    oid: int
    schema: str
    name: str
    columns: tuple[RelationColumn, ...]


class Insert(NamedTuple):
    oid: int
    new: Tuple


class Update(NamedTuple):
    oid: int
    old: Tuple | None
    """The old row (REPLICA IDENTITY FULL), or its key, other columns null; None: the key is as it was."""
    new: Tuple


class Delete(NamedTuple):
    oid: int
    old: Tuple


class Truncate(NamedTuple):
    oids: tuple[int, ...]


Message = Begin | Commit | Relation | Insert | Update | Delete | Truncate


def decode(data: bytes) -> Message | None:
    """A message; None for kinds that say nothing about rows (origins, types)."""
    read = _DECODERS.get(data[0])
    return None if read is None else read(data)


def _begin(data: bytes) -> Begin:
    return Begin(_BEGIN.unpack_from(data, 1)[2])


def _commit(data: bytes) -> Commit:
    _, _, end, micros = _COMMIT.unpack_from(data, 1)
    return Commit(end, _EPOCH + dt.timedelta(microseconds=micros))


def _relation(data: bytes) -> Relation:
    (oid,) = _I32.unpack_from(data, 1)
    schema, at = _name(data, 5)
    name, at = _name(data, at)
    # A byte for the replica identity: which columns old rows have is seen from the rows themselves.
    (count,) = _I16.unpack_from(data, at + 1)
    at += 3
    columns = []
    for _ in range(count):
        column, at = _name(data, at + 1)
        type, _modifier = _ATTRIBUTE.unpack_from(data, at)
        at += _ATTRIBUTE.size
        columns.append(RelationColumn(column, type))
    return Relation(oid, schema, name, tuple(columns))


def _insert(data: bytes) -> Insert:
    (oid,) = _I32.unpack_from(data, 1)
    return Insert(oid, _tuple(data, 6)[0])


def _update(data: bytes) -> Update:
    (oid,) = _I32.unpack_from(data, 1)
    old, at = (_tuple(data, 6)) if data[5] in b"KO" else (None, 5)
    return Update(oid, old, _tuple(data, at + 1)[0])


def _delete(data: bytes) -> Delete:
    (oid,) = _I32.unpack_from(data, 1)
    return Delete(oid, _tuple(data, 6)[0])


def _truncate(data: bytes) -> Truncate:
    count, _options = _TRUNCATE.unpack_from(data, 1)
    return Truncate(tuple(_I32.unpack_from(data, 6 + 4 * i)[0] for i in range(count)))


def _tuple(data: bytes, at: int) -> tuple[Tuple, int]:
    """(values, place behind them)."""
    (count,) = _I16.unpack_from(data, at)
    at += 2
    values: list[Value] = []
    for _ in range(count):
        kind = data[at]
        at += 1
        if kind == 0x74:  # t: a text after its length
            (size,) = _I32.unpack_from(data, at)
            at += 4
            values.append(data[at : at + size].decode())
            at += size
        else:
            values.append(UNCHANGED if kind == 0x75 else None)  # u: unchanged, n: null
    return tuple(values), at


def _name(data: bytes, at: int) -> tuple[str, int]:
    """(a text that ends with a zero byte, place behind it)."""
    stop = data.index(0, at)
    return data[at:stop].decode(), stop + 1


_DECODERS: dict[int, Callable[[bytes], Message]] = {
    ord("B"): _begin,
    ord("C"): _commit,
    ord("R"): _relation,
    ord("I"): _insert,
    ord("U"): _update,
    ord("D"): _delete,
    ord("T"): _truncate,
}
