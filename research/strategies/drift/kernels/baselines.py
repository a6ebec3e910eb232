"""The baselines `scan` and `unicast`: every member has its own anchor, and is looked at or moved by itself.

`scan` compares the new value with the thresholds of every member. `unicast` keeps every member's upper threshold, lower
threshold and due time, each in a binary heap of its own, and moves each member that it finds at the top.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from research.strategies.drift.kernels.threshold_index import LABEL_MAX, LABEL_MIN, Touched
from research.strategies.drift.kernels.threshold_index.layout import due_after, thresholds
from tidings.kernels.arrays import F64, I64, INT64_MAX, Float, Int
from tidings.kernels.jit import kernel

Flags = NDArray[np.bool_]
Keys = Any
"""Keys of a heap, of either type."""
Boxes = tuple[F64, F64, I64, I64]
_NOTHING: Boxes = (np.empty(0), np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64))


class BaselineIndex:
    """Does what `ThresholdIndex` does, member by member. Every member has a label of its own, which must be given.

    With `with_heaps` the touched members are found by heaps and reported one by one (strategy `unicast`), else by a scan and as
    ranges (strategy `scan`).
    """

    def __init__(self, kind: int, patience: int | None = None, *, with_heaps: bool = False) -> None:
        self._kind = kind
        self._patience = patience or 0
        self._with_heaps = with_heaps
        self._members: list[_Members] = []
        self._items: dict[int, Item] = {}
        self._next = 0

    def new_audience(self) -> int:
        self._members.append(_Members())
        return len(self._members) - 1

    def new_items(self, audiences: I64, values: F64, times: I64) -> I64:
        numbers = np.arange(self._next, self._next + len(audiences))
        self._next += len(audiences)
        for number, audience, value, time in zip(
            numbers.tolist(), audiences.tolist(), values.tolist(), times.tolist(), strict=True
        ):
            members = self._members[audience]
            self._items[number] = item = Item(members, value, time)
            item.reset(value, time)
            members.items.append(item)
        return numbers

    def free_item(self, item: int) -> None:
        gone = self._items.pop(item)
        gone.members.items.remove(gone)

    def add(self, audiences: I64, reaches: F64, labels: I64) -> I64:
        for audience in np.unique(audiences).tolist():
            mine = audiences == audience
            self._members[audience].add(reaches[mine], labels[mine])
        return labels

    def remove(self, audiences: I64, reaches: F64, labels: I64) -> None:
        for audience in np.unique(audiences).tolist():
            mine = audiences == audience
            self._members[audience].remove(reaches[mine], labels[mine])

    def move(self, items: I64, values: F64, times: I64) -> Touched:
        boxes = [
            self._move(self._items[item], value, time)
            for item, value, time in zip(items.tolist(), values.tolist(), times.tolist(), strict=True)
        ]
        starts = np.zeros(len(boxes) + 1, np.int64)
        np.cumsum([len(box[0]) for box in boxes], out=starts[1:])
        reach_lo, reach_hi, label_lo, label_hi = zip(_NOTHING, *boxes, strict=True)
        return Touched(starts, *map(np.concatenate, (reach_lo, reach_hi, label_lo, label_hi)))

    def member_count(self, audience: int) -> int:
        return len(self._members[audience].reach)

    def value(self, item: int) -> tuple[float, int]:
        return self._items[item].value, self._items[item].time

    def dump(self) -> dict[str, Any]:
        return {
            "next": self._next,
            "members": [[members.reach, members.label] for members in self._members],
            "items": [
                [number, self._members.index(item.members), item.value, item.time, item.anchor, item.anchor_time]
                for number, item in self._items.items()
            ],
        }

    def load(self, state: dict[str, Any]) -> None:
        self._next = state["next"]
        for reach, label in state["members"]:
            members = _Members()
            members.reach, members.label = reach, label
            self._members.append(members)
        for number, audience, value, time, anchor, anchor_time in state["items"]:
            item = Item(self._members[audience], value, time)
            item.anchor, item.anchor_time = anchor, anchor_time
            item.members.items.append(item)
            self._items[number] = item

    def _move(self, item: Item, value: float, time: int) -> Boxes:
        was_void, item.value, item.time = np.isnan(item.value), value, time
        if np.isnan(value) or was_void:
            item.reset(value, time)
            touched = np.arange(0 if np.isnan(value) and was_void else len(item.members.reach))
        else:
            touched = self._touch(item, value, time)
        return item.members.boxes(touched, one_each=self._with_heaps)

    def _touch(self, item: Item, value: float, time: int) -> I64:
        """Moves the anchors of the members that the value leaves behind, and returns these members."""
        if self._with_heaps:
            item.finder = item.finder or _Heaps(self._kind, self._patience, item)
            return item.finder.move(value, time)
        hit = np.zeros(len(item.anchor), np.bool_)
        scan(self._kind, self._patience, item.members.reach, value, time, hit, item.anchor, item.anchor_time)
        return np.flatnonzero(hit)


class _Members:
    """Members of an audience in the order of their keys, and the items that follow it."""

    def __init__(self) -> None:
        self.reach = np.empty(0)
        self.label = np.empty(0, np.int64)
        self.items: list[Item] = []

    def add(self, reach: F64, label: I64) -> None:
        joined = np.concatenate([self.reach, reach]), np.concatenate([self.label, label])
        order = np.lexsort((joined[1], joined[0]))
        self.reach, self.label = joined[0][order], joined[1][order]
        for item in self.items:
            item.rearrange(len(reach), order)

    def remove(self, reach: F64, label: I64) -> None:
        kept = np.flatnonzero(~np.isin(_keys(self.reach, self.label), _keys(reach, label)))
        self.reach, self.label = self.reach[kept], self.label[kept]
        for item in self.items:
            item.rearrange(0, kept)

    def boxes(self, touched: I64, *, one_each: bool) -> Boxes:
        """Boxes of the touched members: of each, or of maximal runs of neighbours, at most three a run."""
        if one_each or len(touched) == 0:
            return self.reach[touched], self.reach[touched], self.label[touched], self.label[touched]
        breaks = np.flatnonzero(np.diff(touched) > 1)
        found: list[tuple[float, float, int, int]] = []
        for a, b in zip(touched[np.append(0, breaks + 1)], touched[np.append(breaks, len(touched) - 1)], strict=True):
            found.extend(_boxes_of_run(self.reach, self.label, int(a), int(b)))
        lo, hi, first, last = zip(*found, strict=True)
        return np.array(lo), np.array(hi), np.array(first, np.int64), np.array(last, np.int64)


def _boxes_of_run(reach: F64, label: I64, a: int, b: int) -> Iterator[tuple[float, float, int, int]]:
    """The run of members a..b as boxes: the rest of the first reach, whole reaches, the beginning of the last."""
    first, last = float(reach[a]), float(reach[b])
    starts_inside = a > 0 and reach[a - 1] == first
    ends_inside = b + 1 < len(reach) and reach[b + 1] == last
    if first == last:
        yield first, last, int(label[a]) if starts_inside else LABEL_MIN, int(label[b]) if ends_inside else LABEL_MAX
        return
    if starts_inside:
        yield first, first, int(label[a]), LABEL_MAX
        first = float(np.nextafter(first, np.inf))
    if ends_inside:
        yield last, last, LABEL_MIN, int(label[b])
        last = float(np.nextafter(last, -np.inf))
    if first <= last:
        yield first, last, LABEL_MIN, LABEL_MAX


def _keys(reach: F64, label: I64) -> NDArray[Any]:
    keys = np.empty(len(reach), [("reach", np.float64), ("label", np.int64)])
    keys["reach"], keys["label"] = reach, label
    return keys


class Item:
    """A value, and the anchor of every member for it, in the members' order."""

    def __init__(self, members: _Members, value: float, time: int) -> None:
        self.members = members
        self.value = value
        self.time = time
        self.anchor = np.empty(0)
        self.anchor_time = np.empty(0, np.int64)
        self.finder: Any = None
        """What finds touched members, made from the anchors when it is needed."""

    def reset(self, value: float, time: int) -> None:
        self.anchor = np.full(len(self.members.reach), value)
        self.anchor_time = np.full(len(self.members.reach), time)
        self.finder = None

    def rearrange(self, added: int, order: I64) -> None:
        """Follows the members, some of which have been added behind and then all been put into this order."""
        self.anchor = np.concatenate([self.anchor, np.full(added, self.value)])[order]
        self.anchor_time = np.concatenate([self.anchor_time, np.full(added, self.time)])[order]
        self.finder = None


class _Heaps:
    """The ends of all members of an item: a heap of upper ends, one of negated lower ends, one of due times."""

    def __init__(self, kind: int, patience: int, item: Item) -> None:
        count = len(item.anchor)
        self._kind, self._patience, self._item = kind, patience, item
        self._ends = np.empty((2, count))
        self._dues = np.empty(count, np.int64)
        set_ends(kind, patience, item.members.reach, item.anchor, item.anchor_time, self._ends, self._dues)
        self._heaps = np.tile(np.arange(count), (3, 1))
        self._places = self._heaps.copy()
        for i, key in enumerate((*self._ends, self._dues)):
            heapify(self._heaps[i], self._places[i], key)
        self._is_touched = np.zeros(count, np.bool_)
        self._touched = np.empty(count, np.int64)

    def move(self, value: float, time: int) -> I64:
        item = self._item
        count = move_in_heaps(
            self._kind,
            self._patience,
            item.members.reach,
            value,
            time,
            self._is_touched,
            item.anchor,
            item.anchor_time,
            self._heaps,
            self._places,
            self._ends,
            self._dues,
            self._touched,
        )
        return self._touched[:count].copy()


# --- Kernels ---


@kernel(error_model="numpy")
def scan(
    kind: Int, patience: Int, reach: F64, value: Float, time: Int, is_touched: Flags, anchor: F64, anchor_time: I64
) -> None:
    """Marks and re-anchors every member that the value leaves behind."""
    for i in range(len(reach)):
        up, dn = thresholds(kind, anchor[i], reach[i])
        is_touched[i] = value >= up or value <= dn or time > due_after(patience, anchor_time[i])
        if is_touched[i]:
            anchor[i] = value
            anchor_time[i] = time


@kernel
def sift(heap: I64, place: I64, key: Keys, at: Int) -> None:
    """Moves the entry at a place of the heap to where its key belongs."""
    member = heap[at]
    while at > 0 and key[heap[(at - 1) // 2]] > key[member]:
        heap[at] = heap[(at - 1) // 2]
        place[heap[at]] = at
        at = (at - 1) // 2
    while 2 * at + 1 < len(heap):
        child = 2 * at + 1
        if child + 1 < len(heap) and key[heap[child + 1]] < key[heap[child]]:
            child += 1
        if key[heap[child]] >= key[member]:
            break
        heap[at] = heap[child]
        place[heap[at]] = at
        at = child
    heap[at] = member
    place[member] = at


@kernel
def heapify(heap: I64, place: I64, key: Keys) -> None:
    """Puts the entries into the order of their keys, which is one of a heap."""
    heap[:] = heap[np.argsort(key[heap], kind="mergesort")]
    for at in range(len(heap)):
        place[heap[at]] = at


@kernel
def _take(heap: I64, place: I64, key: Keys, limit: Any, gone: Any, touched: I64, count: Int, is_touched: Flags) -> Int:
    """Takes the members whose key does not exceed the limit from the top of the heap."""
    while len(heap) and key[heap[0]] <= limit and key[heap[0]] != gone:
        member = heap[0]
        if not is_touched[member]:
            is_touched[member] = True
            touched[count] = member
            count += 1
        key[member] = gone
        sift(heap, place, key, 0)
    return count


@kernel(error_model="numpy")
def set_ends(kind: Int, patience: Int, reach: F64, anchor: F64, anchor_time: I64, ends: F64, dues: I64) -> None:
    """The keys of all members: ends [2, n], upper ones and negated lower ones; dues [n]."""
    for i in range(len(reach)):
        up, dn = thresholds(kind, anchor[i], reach[i])
        ends[0, i] = up
        ends[1, i] = -dn
        dues[i] = due_after(patience, anchor_time[i])


@kernel(error_model="numpy")
def move_in_heaps(
    kind: Int,
    patience: Int,
    reach: F64,
    value: Float,
    time: Int,
    is_touched: Flags,
    anchor: F64,
    anchor_time: I64,
    heaps: I64,
    places: I64,
    ends: F64,
    dues: I64,
    touched: I64,
) -> Int:
    """Re-anchors the members that the value leaves behind; gives their number, and themselves in `touched`.

    heaps, places: [3, n], of the upper ends, the negated lower ends and the due times.
    """
    count = _take(heaps[0], places[0], ends[0], value, np.inf, touched, 0, is_touched)
    count = _take(heaps[1], places[1], ends[1], -value, np.inf, touched, count, is_touched)
    count = _take(heaps[2], places[2], dues, max(time, -INT64_MAX) - 1, INT64_MAX, touched, count, is_touched)
    for i in range(count):
        member = touched[i]
        is_touched[member] = False
        anchor[member] = value
        anchor_time[member] = time
        up, dn = thresholds(kind, value, reach[member])
        ends[0, member] = up
        ends[1, member] = -dn
        dues[member] = due_after(patience, time)
        sift(heaps[0], places[0], ends[0], places[0, member])
        sift(heaps[1], places[1], ends[1], places[1, member])
        sift(heaps[2], places[2], dues, places[2, member])
    return count
