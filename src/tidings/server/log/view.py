"""Net changes: what leads from one answer of a subscription to a later one, for clients that are not told every step."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence

import msgspec

from tidings.model.notification import delete_change, insert_change, update_change
from tidings.model.row_bag import RowBag

_columns = msgspec.json.Decoder(dict[str, msgspec.Raw]).decode


def net(before: RowBag, after: RowBag, key: Sequence[str]) -> list[str]:
    """Changes that lead from `before` to `after`: updates, deletes and inserts in this order, each sorted by text.

    key: columns. A row that goes and one that comes with equal values in all of them are an update. With no key, or where rows
    lack a column of it, there are no updates.
    """
    gone, come = before.texts - after.texts, after.texts - before.texts
    updates = sorted(_updates(gone, come, key)) if key and gone and come else []
    for old, new in updates:
        gone[old] -= 1
        come[new] -= 1
    return [
        *(update_change(old.decode(), new.decode()) for old, new in updates),
        *(delete_change(row.decode()) for row in sorted(gone.elements())),
        *(insert_change(row.decode()) for row in sorted(come.elements())),
    ]


def _updates(gone: Counter[bytes], come: Counter[bytes], key: Sequence[str]) -> list[tuple[bytes, bytes]]:
    """(old row, new row) with equal keys. Where several rows have one key, they are paired in the order of their texts."""
    leaving: defaultdict[tuple[bytes, ...], list[bytes]] = defaultdict(list)
    for row in sorted(gone.elements(), reverse=True):
        if (values := _key(row, key)) is not None:
            leaving[values].append(row)
    pairs = []
    for row in sorted(come.elements()):
        if (values := _key(row, key)) is not None and leaving.get(values):
            pairs.append((leaving[values].pop(), row))
    return pairs


def _key(row: bytes, key: Sequence[str]) -> tuple[bytes, ...] | None:
    values = _columns(row)
    return tuple(bytes(values[name]) for name in key) if all(name in values for name in key) else None
