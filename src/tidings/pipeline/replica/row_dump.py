"""Rows of a dump brought to the layout of a catalog that has got more tables, or more columns at the end of its tables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tidings.kernels.rows import I64
from tidings.model.catalog import Catalog

_NULL = np.frombuffer(b"null", np.uint8)


class Former(NamedTuple):
    """A table as it was when a dump was made. number: the one it has now; columns: how many it had then."""

    number: int
    columns: int


def described(catalog: Catalog) -> dict[str, Any]:
    """Number of a table -> [name, number of columns], for `former_tables`."""
    return {str(number): [table.name, len(table.columns)] for number, table in enumerate(catalog.tables)}


def former_tables(known: Mapping[str, Sequence[Any]], catalog: Catalog) -> dict[str, Former]:
    """The tables of a dump, by their numbers there. The catalog must extend that of the dump (`Catalog.objection_to`)."""
    numbers = {table.name: number for number, table in enumerate(catalog.tables)}
    return {number: Former(numbers[name], count) for number, (name, count) in known.items()}


def widened(part: Mapping[str, Any], before: int, after: int) -> dict[str, Any]:
    """Records of a table with `before` columns as records with `after`, the new ones null.

    part: words [rows, words of a record but the first] and text, laid out as `tidings.kernels.rows.read` says.
    """
    words, text = part["words"], part["text"]
    more = after - before
    if not more:
        return dict(part)
    old_codes, new_codes = 1 + (before + 63) // 64, 1 + (after + 63) // 64
    wide = np.zeros((len(words), new_codes + 3 * after), np.int64)
    wide[:, :old_codes] = words[:, :old_codes]
    for section in range(3):
        start, old = new_codes + section * after, old_codes + section * before
        wide[:, start : start + before] = words[:, old : old + before]
    # The text of a null is written out, as lines show it.
    ends = wide[:, new_codes + 2 * after :]
    sizes = words[:, -1]
    ends[:, before:] = sizes[:, None] + len(_NULL) * np.arange(1, more + 1)
    wide[:, 0] = np.cumsum(sizes + len(_NULL) * more) - (sizes + len(_NULL) * more)
    return {"words": wide, "text": _with_nulls(text, words[:, 0], sizes, wide[:, 0], more)}


def _with_nulls(text: Any, starts: I64, sizes: I64, to: I64, more: int) -> Any:
    nulls = np.tile(_NULL, more)
    found = np.empty(int((sizes + len(nulls)).sum()), np.uint8)
    for start, size, at in zip(starts.tolist(), sizes.tolist(), to.tolist(), strict=True):
        found[at : at + size] = text[start : start + size]
        found[at + size : at + size + len(nulls)] = nulls
    return found
