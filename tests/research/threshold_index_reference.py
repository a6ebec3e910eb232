"""What `ThresholdIndex` means, member by member in plain Python; and a check of all that its arrays promise."""

from __future__ import annotations

import math
from collections import Counter
from typing import Any

import numpy as np

from research.strategies.drift.kernels.threshold_index import (
    LABEL_MAX,
    LABEL_MIN,
    NO_TIME,
    PERCENT,
    RATIO,
    ThresholdIndex,
)
from research.strategies.drift.kernels.threshold_index.layout import (
    AUDIENCE_ROOT,
    AUDIENCE_SHAPE,
    AUDIENCE_TOP,
    BLOCK_MAX,
    CHILD,
    COUNT,
    DN,
    DUE,
    HI,
    INT64_MAX,
    ITEM_AUDIENCE,
    ITEM_ROOT,
    ITEM_SHAPE,
    ITEM_TOP,
    ITEMS,
    L1,
    L2,
    LABEL_HI,
    LABEL_LO,
    LIST_WIDTH,
    LO,
    MEMORY_START,
    NODE_MAX,
    REACH_WIDTH,
    REACHES_MAX,
    RECORD_WIDTH,
    ROOT_CHILD,
    ROOT_SHAPE,
    ROOT_WIDTH,
    SHAPE,
    T0,
    TOTAL,
    UP,
    C,
    N,
    thresholds,
)
from tidings.kernels.extents import CHAINS, SIZES, TOP, class_words, size_class

Key = tuple[float, int]
Anchor = tuple[float, int]
Box = tuple[float, float, int, int]


def is_touched(kind: int, patience: int | None, anchor: Anchor, reach: float, d: float, t: int) -> bool:
    c, t0 = anchor
    if patience is not None and NO_TIME not in (t, t0) and t - t0 >= patience:
        return True
    if kind == PERCENT:
        step = abs(c) * reach / 100
        return d >= c + step or d <= c - step
    if kind == RATIO:
        return d >= c * reach or d <= c / reach
    return d >= c + reach or d <= c - reach


class Reference:
    """Every (item, key) has its anchor; members with equal keys have equal anchors, as their labels are chosen so."""

    def __init__(self, kind: int, patience: int | None) -> None:
        self.kind, self.patience = kind, patience
        self.members: dict[int, Counter[Key]] = {}
        self.audience: dict[int, int] = {}
        self.value: dict[int, Anchor] = {}
        self.anchors: dict[int, dict[Key, Anchor]] = {}

    def new_item(self, item: int, audience: int, d: float, t: int) -> None:
        assert item not in self.value
        self.audience[item], self.value[item] = audience, (d, t)
        self.anchors[item] = {} if math.isnan(d) else dict.fromkeys(self.members[audience], (d, t))

    def free_item(self, item: int) -> None:
        del self.audience[item], self.value[item], self.anchors[item]

    def followers(self, audience: int) -> list[int]:
        return [item for item, followed in self.audience.items() if followed == audience]

    def add(self, audience: int, key: Key) -> None:
        self.members[audience][key] += 1
        for item in self.followers(audience):
            if not math.isnan(self.value[item][0]):
                assert self.anchors[item].setdefault(key, self.value[item]) == self.value[item], "a label chosen badly"

    def remove(self, audience: int, key: Key) -> None:
        self.members[audience][key] -= 1
        if not self.members[audience][key]:
            del self.members[audience][key]
            for item in self.followers(audience):
                self.anchors[item].pop(key, None)

    def move(self, item: int, d: float, t: int) -> set[Key]:
        keys = self.members[self.audience[item]]
        before, self.value[item] = self.value[item][0], (d, t)
        if math.isnan(before) or math.isnan(d):
            self.anchors[item] = {} if math.isnan(d) else dict.fromkeys(keys, (d, t))
            return set() if math.isnan(before) and math.isnan(d) else set(keys)
        anchors = self.anchors[item]
        touched = {key for key in keys if is_touched(self.kind, self.patience, anchors[key], key[0], d, t)}
        anchors.update(dict.fromkeys(touched, (d, t)))
        return touched

    def fewest_boxes(self, item: int, touched: set[Key]) -> int:
        """Boxes needed, if a box has either whole reaches or some labels of one reach, and no untouched key."""
        boxes = 0
        last: tuple[str, float] | None = None
        keys = sorted(self.members[self.audience[item]])
        for reach in sorted({key[0] for key in keys}):
            hits = [key in touched for key in keys if key[0] == reach]
            if all(hits):
                boxes += last is None or last[0] == "part"
                last = "whole", reach
            else:
                boxes += sum(hit and not (i and hits[i - 1]) for i, hit in enumerate(hits))
                last = ("part", reach) if hits[-1] else None
        return boxes


def holds(box: Box, key: Key) -> bool:
    return box[0] <= key[0] <= box[1] and box[2] <= key[1] <= box[3]


def are_disjoint(boxes: list[Box]) -> bool:
    return all(a[1] < b[0] or b[1] < a[0] or a[3] < b[2] or b[3] < a[2] for i, a in enumerate(boxes) for b in boxes[:i])


def check_invariants(index: ThresholdIndex) -> None:
    """All that `layout` and `runs` say about the arrays."""
    a = index._arrays
    used: list[tuple[int, int]] = [(0, MEMORY_START)]
    members = [_check_audience(a, audience, used) for audience in range(int(a.head[AUDIENCE_TOP]))]
    followers: Counter[int] = Counter()
    for item in range(int(a.head[ITEM_TOP])):
        audience = int(a.items[item, ITEM_AUDIENCE])
        if audience >= 0:
            followers[audience] += 1
            records = _check_lists(a, item, used)
            _check_records(index, item, records, members[audience])
    for audience in range(len(members)):
        assert a.audiences[audience, ITEMS] == followers[audience]
    for size in range(SIZES):
        offset = int(a.head[CHAINS + size])
        while offset:
            used.append((offset, int(class_words(size))))
            offset = int(a.m[offset])
    end = 0
    for offset, size in sorted(used):
        assert offset == end, "extents overlap, or memory is lost"
        end += size
    assert end == a.head[TOP] <= len(a.m)


def _claim(used: list[tuple[int, int]], width: int, offset: int, shape: int, most: float) -> tuple[int, int]:
    size, k = shape >> 8, shape & 255
    assert 1 <= size <= min(most, 1 << k)
    used.append((offset, int(class_words(size_class(width << k)))))
    return size, k


def _check_audience(a: Any, audience: int, used: list[tuple[int, int]]) -> dict[float, tuple[int, int, int]]:
    found: list[tuple[float, tuple[int, int, int]]] = []
    shape, root = int(a.audiences[audience, AUDIENCE_SHAPE]), int(a.audiences[audience, AUDIENCE_ROOT])
    if shape:
        blocks, kr = _claim(used, ROOT_WIDTH, root, shape, math.inf)
        for b in range(blocks):
            offset = int(a.m[root + (ROOT_CHILD << kr) + b])
            size, k = _claim(used, REACH_WIDTH, offset, int(a.m[root + (ROOT_SHAPE << kr) + b]), REACHES_MAX)
            assert a.f[root + b] == a.f[offset]
            for i in range(offset, offset + size):
                fields = tuple(int(a.m[i + (field << k)]) for field in (COUNT, LABEL_LO, LABEL_HI))
                found.append((float(a.f[i]), fields))  # type: ignore[arg-type]
    reaches = [reach for reach, _ in found]
    assert reaches == sorted(set(reaches))
    assert all(fields[0] > 0 and fields[1] <= fields[2] for _, fields in found)
    assert a.audiences[audience, TOTAL] == sum(fields[0] for _, fields in found)
    return dict(found)


def _check_lists(a: Any, item: int, used: list[tuple[int, int]]) -> list[tuple[Any, ...]]:
    """Sizes, keys and aggregates; returns the records."""
    records = []
    root, shape = int(a.items[item, ITEM_ROOT]), int(a.items[item, ITEM_SHAPE])
    if not shape:
        return []
    nodes, kr = _claim(used, LIST_WIDTH, root, shape, math.inf)
    for ni in range(nodes):
        node = int(a.m[root + (CHILD << kr) + ni])
        blocks, kn = _claim(used, LIST_WIDTH, node, int(a.m[root + (SHAPE << kr) + ni]), NODE_MAX)
        _check_entry(a, root, kr, ni, node, blocks, kn)
        for bi in range(blocks):
            block = int(a.m[node + (CHILD << kn) + bi])
            size, k = _claim(used, RECORD_WIDTH, block, int(a.m[node + (SHAPE << kn) + bi]), BLOCK_MAX)
            _check_entry(a, node, kn, bi, block, size, k)
            for i in range(block, block + size):
                floats = [float(a.f[i + (field << k)]) for field in (LO, HI, C, UP, DN)]
                records.append((*floats, *(int(a.m[i + (field << k)]) for field in (L1, L2, N, T0, DUE))))
    return records


def _check_entry(a: Any, to: int, kt: int, at: int, offset: int, size: int, k: int) -> None:
    def column(array: Any, field: int) -> Any:
        return array[offset + (field << k) : offset + (field << k) + size]

    ups, dns = column(a.f, UP), column(a.f, DN)
    assert a.f[to + (UP << kt) + at] == np.min(ups, where=~np.isnan(ups), initial=np.inf)
    assert a.f[to + (DN << kt) + at] == np.max(dns, where=~np.isnan(dns), initial=-np.inf)
    assert a.m[to + (DUE << kt) + at] == column(a.m, DUE).min()
    assert a.f[to + (LO << kt) + at] == column(a.f, LO)[0]
    assert a.m[to + (L1 << kt) + at] == column(a.m, L1)[0]


def _check_records(
    index: ThresholdIndex, item: int, records: list[tuple[Any, ...]], members: dict[float, tuple[int, int, int]]
) -> None:
    """The records are in order and cover the members, each reach by one wide record or by two or more parts."""
    if math.isnan(index.value(item)[0]):
        assert not records
        return
    patience = index.patience
    place = {reach: i for i, reach in enumerate(members)}
    covered = 0
    parts: list[tuple[Any, ...]] = []
    for record in records:
        lo, hi, c, up, dn, l1, l2, n, t0, due = record
        np.testing.assert_equal((up, dn), thresholds.py_func(index.kind, c, lo))
        never = patience is None or t0 == NO_TIME or t0 + patience > INT64_MAX
        assert due == (INT64_MAX if never else t0 + patience - 1)  # type: ignore[operator]
        assert place[lo] == covered
        if n == 0:
            assert not parts
            assert (l1, l2) == (LABEL_MIN, LABEL_MAX)
            covered = place[hi] + 1
            continue
        assert lo == hi
        assert l1 <= l2
        assert not parts or parts[-1][6] < l1
        parts.append(record)
        count, low, high = members[lo]
        assert low <= l1 <= l2 <= high
        if sum(part[7] for part in parts) == count:
            assert len(parts) > 1
            parts = []
            covered += 1
    assert not parts
    assert covered == len(members)
