"""Patterns of a view set as arrays, filed such that those that may embed in a pattern are found without looking at all.

A pattern is filed under its rarest feature: a label, or two labels above each other. A pattern that embeds in a target has no
feature that the target has not, so a target looks where its own features are filed.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tidings.kernels.arrays import I64, grow
from tidings.relay.embedding import Need, carried
from tidings.relay.pattern import Axis, Pattern, Returned
from tidings.relay.rewriting.kernels.embedding import WORDS, features, masks_of_nodes, signatures

_CARRIED = {Returned.ID: 0, Returned.VAL: 1, Returned.CONT: 2}
_LABELS_MAX = 2**28
"""Numbers of pairs of labels are made with this, so that they stay the same when labels come."""


class PatternTable:
    """Patterns by number, from 0. They are appended; a removed one keeps its number.

    The arrays have room to spare behind the last pattern: see `nodes`, `of_patterns`.
    """

    def __init__(self, patterns: Iterable[Pattern]) -> None:
        self._labels: dict[str, int] = {}
        self._constants: dict[str, int] = {}
        self._patterns = 0
        self._first_node = np.zeros(1, np.int64)
        self._label = np.zeros(0, np.int32)
        self._parent = np.zeros(0, np.int32)
        self._is_child = np.zeros(0, np.bool_)
        self._constant = np.zeros(0, np.int32)
        self._carried = np.zeros(0, np.uint8)
        self.masks = np.zeros((0, 4), np.uint64)
        """Per node: see `masks_of_nodes`."""
        self.bits = np.zeros((0, 4), np.uint64)
        """Per node and need, its bit among the needs of its pattern; 0 if it has no such need."""
        self.words = np.zeros((0, WORDS), np.uint64)
        self._needs = np.zeros(0, np.int32)
        self._full = np.zeros(0, np.uint64)
        self._alive = np.zeros(0, np.bool_)
        self._first_feature = np.zeros(1, np.int64)
        self._feature = np.zeros(0, np.int64)
        self._known = np.zeros(0, np.int64)
        self.filed = (np.zeros(1, np.int64), np.zeros(0, np.int32))
        """Where the patterns filed under each feature begin, and their numbers. Later ones are not filed."""
        self.extend(list(patterns))
        self._file()

    def __len__(self) -> int:
        return self._patterns

    @property
    def labels(self) -> int:
        return len(self._labels)

    @property
    def nodes(self) -> tuple[NDArray[Any], ...]:
        """First node per pattern; per node label, parent, whether it is a `/` step, constant or -1, what messages carry."""
        return self._first_node, self._label, self._parent, self._is_child, self._constant, self._carried

    @property
    def features(self) -> tuple[I64, I64]:
        """First feature per pattern, and numbers of features; -1 where nothing is filed."""
        return self._first_feature, self._feature

    @property
    def needs(self) -> NDArray[np.int32]:
        """How much there is to cover of each pattern."""
        return self._needs[: self._patterns]

    @property
    def full(self) -> NDArray[np.uint64]:
        """The mask of all needs; 0 where a word is too small for it."""
        return self._full[: self._patterns]

    @property
    def alive(self) -> NDArray[np.bool_]:
        return self._alive[: self._patterns]

    def remove(self, number: int) -> None:
        self._alive[number] = False

    def extend(self, patterns: Sequence[Pattern]) -> None:
        """Appends patterns. They are not filed: whoever looks for sources looks at each of them."""
        begin, first = self._patterns, int(self._first_node[self._patterns])
        counts, rows = self._rows(patterns)
        nodes = len(rows[0])
        total, bits = _numbered_needs(counts, rows[3], rows[4])
        columns: list[NDArray[Any]] = [self._label, self._parent, self._is_child, self._constant, self._carried]
        for column, values in zip(columns, rows, strict=True):
            _put(column, first, values)
        _put(self.bits, first, bits)
        grow(self.masks, first + nodes)
        grow(self.words, begin + len(patterns))
        _put(self._first_node, begin + 1, first + np.cumsum(counts))
        _put(self._needs, begin, total)
        one = np.uint64(1)
        below = (one << np.minimum(total, 63).astype(np.uint64)) - one
        _put(self._full, begin, np.where(total < 64, below, np.where(total == 64, ~np.uint64(0), np.uint64(0))))
        _put(self._alive, begin, np.ones(len(patterns), np.bool_))
        self._patterns = end = begin + len(patterns)
        masks_of_nodes(self._first_node, self._parent, self._is_child, self.masks, begin, end)
        head = (self._first_node, self._label, self._parent, self._is_child, self._constant)
        signatures(*head, _LABELS_MAX, self.words, begin, end)
        found = np.empty(0, np.int64)
        ends = np.empty(len(patterns) + 1, np.int64)
        for _ in range(2):
            room = features(self._first_node, self._label, self._parent, _LABELS_MAX, begin, end, found, ends)
            if room <= len(found):
                break
            found = np.empty(room, np.int64)
        at = int(self._first_feature[begin])
        _put(self._feature, at, self._codes(found))
        _put(self._first_feature, begin + 1, at + ends[1:])
        self._raw = found

    def _rows(self, patterns: Sequence[Pattern]) -> tuple[I64, tuple[NDArray[Any], ...]]:
        """Nodes per pattern; label, parent, is_child, constant, carried per node."""
        label: list[int] = []
        parent: list[int] = []
        is_child: list[bool] = []
        constant: list[int] = []
        carries: list[int] = []
        counts = []
        labels, constants = self._labels, self._constants
        for pattern in patterns:
            for step in pattern.nodes:
                label.append(labels.setdefault(step.label, len(labels)))
                is_child.append(step.axis is Axis.CHILD)
                value = step.constant
                constant.append(-1 if value is None else constants.setdefault(value, len(constants)))
                carries.append(_CARRIED[carried(step)] if step.returns else 0)
            parent.extend(pattern.parents)
            counts.append(len(pattern.nodes))
        kinds = (np.int32, np.int32, np.bool_, np.int32, np.uint8)
        rows = (label, parent, is_child, constant, carries)
        return np.array(counts, np.int64), tuple(np.array(row, kind) for row, kind in zip(rows, kinds, strict=True))

    def _codes(self, found: I64) -> I64:
        """Numbers of features; -1 of those under which nothing is filed."""
        if not len(self._known):
            return np.full(len(found), -1, np.int64)
        place = np.minimum(np.searchsorted(self._known, found), len(self._known) - 1)
        return np.where(self._known[place] == found, place, -1)

    def _file(self) -> None:
        if not self._patterns:
            return
        self._known, codes, counts = np.unique(self._raw, return_inverse=True, return_counts=True)
        self._feature[: len(codes)] = codes
        starts = self._first_feature[: self._patterns]
        # The rarest feature of each pattern: the smallest (count, code).
        key = counts[codes] * len(counts) + codes
        rarest = np.minimum.reduceat(key, starts) % len(counts)
        order = np.argsort(rarest, kind="stable").astype(np.int32)
        self.filed = (np.concatenate([[0], np.cumsum(np.bincount(rarest, minlength=len(counts)))]), order)


def _put(array: NDArray[Any], at: int, values: NDArray[Any]) -> None:
    grow(array, at + len(values))
    array[at : at + len(values)] = values


def _numbered_needs(counts: I64, constant: NDArray[Any], carries: NDArray[Any]) -> tuple[I64, NDArray[np.uint64]]:
    """Needs per pattern, and the bits of each node, in the order of `tidings.relay.embedding.needs`; 0 beyond 64."""
    has_constant = constant >= 0
    of_node = 1 + has_constant + (carries > 0)
    starts = np.cumsum(counts) - counts
    owner = np.repeat(np.arange(len(counts)), counts)
    before = np.cumsum(of_node) - of_node
    number = before - before[starts][owner]
    total = np.add.reduceat(of_node, starts) if len(counts) else counts
    fits = (total <= 64)[owner]
    bits = np.zeros((len(constant), 4), np.uint64)
    for need, has, shift in (
        (Need.ID, True, 0),
        (Need.PREDICATE, has_constant, 1),
        (Need.VAL, carries == 1, 1 + has_constant),
        (Need.CONT, carries == 2, 1 + has_constant),
    ):
        place = np.where(fits, number + shift, 0).astype(np.uint64)
        bits[:, need] = np.where(fits & has, np.uint64(1) << place, np.uint64(0))
    return total, bits
