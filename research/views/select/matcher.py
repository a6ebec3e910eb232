"""Matches messages with the select subscriptions on a table, by a `SelectEvaluator` over the rows that messages carry."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa

from research.strategies.select.reformulate import NEW, OLD
from research.strategies.select.table_form import TableSpace, predicates_of, spread
from research.views.protocols import Pairs
from research.views.select.message_rows import MessageRows
from tidings.families.select.evaluator import SelectEvaluator
from tidings.families.shown import ProjectionTable, Tails, render
from tidings.kernels.arrays import grow
from tidings.kernels.events import CHANGE, Events, Told
from tidings.kernels.handles import handles_of
from tidings.kernels.lives import new_lives
from tidings.kernels.rows import NONE
from tidings.model.codes import BoolArray, Int64Array
from tidings.model.points import PointBatch

_NO_LIVES = new_lives(0)
"""Nobody comes or goes between messages, so that records of subscriptions are not looked at."""


@dataclass(frozen=True)
class Found(Pairs):
    """Pairs that get a notification, and for each the number of its tail in `evaluated`, from which `Matcher.tails` renders."""

    tail: Int64Array
    events: Events
    evaluated: Told
    payload: pa.RecordBatch
    """Payload of the messages."""


class Matcher:
    """The select subscriptions on a table at one gateway, by slot. One compiled call matches a batch of messages."""

    def __init__(self, space: TableSpace) -> None:
        self.space = space
        self._rows = MessageRows(space.table)
        self._evaluator = SelectEvaluator(space.catalog, self._rows)
        self._projections = ProjectionTable()
        self._projection_of = np.empty(0, np.int32)
        """[slots]: number of the projection."""
        self._constrained: set[int] = set()
        """Columns with a predicate of a present or past subscription."""
        self._numbers: dict[tuple[int, ...], int] = {}
        """Columns shown -> number of the projection, which is never given up."""
        self._columns: list[tuple[int, ...]] = []
        """[projections]: columns that the projection shows."""

    @property
    def nbytes(self) -> int:
        return self._evaluator.nbytes + self._projection_of.nbytes

    def add(self, slots: Int64Array, points: PointBatch) -> None:
        grow(self._projection_of, int(slots.max(initial=-1)) + 1)
        predicates = predicates_of(points.details)
        for shown, batch, owner in spread(self.space, points, predicates):
            own, projection = slots[owner], self._projection(shown)
            self._projection_of[own] = projection
            self._evaluator.place(batch, own, np.full(len(own), projection))
        self._constrained |= {i for each in predicates.distinct for i in each.equalities + each.ranges}

    def remove(self, slots: Int64Array) -> None:
        self._evaluator.remove(slots)

    def coords(self, slots: Int64Array) -> Int64Array:
        """Coordinates of the points in these slots, [slots, dims], as far as their predicates do not say them."""
        ends = self._evaluator.ends(self.space.table.name, slots)
        return ends.reshape(len(slots), -1, 2)[:, list(self.space.comparable)].reshape(len(slots), -1)

    def shown(self, slots: Int64Array) -> tuple[Int64Array, list[tuple[int, ...]]]:
        """(number of the projection of each slot, [slots]; the columns of each projection, by number)."""
        return self._projection_of[slots].astype(np.int64), self._columns

    def match(self, seq: Int64Array, payload: pa.RecordBatch, tags: Int64Array) -> Found:
        """Pairs of messages and slots that get a notification. tags: [messages], whether OLD, NEW or both rows exist."""
        count = len(seq)
        is_sorted = bool((seq[1:] >= seq[:-1]).all())
        order = np.arange(count) if is_sorted else np.argsort(seq, kind="stable").astype(np.int64)
        at, present = seq[order], tags[order]
        self._rows.take(payload, self._constrained)
        events = Events.of(CHANGE, NONE, np.full(count, NONE))
        events.seq[:], events.table[:] = at, 0
        events.old[:], events.new[:] = (
            np.where(present & OLD, order, NONE),
            np.where(present & NEW, order + count, NONE),
        )
        evaluated = self._evaluator.apply(events, _NO_LIVES, self._projections.arrays)
        changes = evaluated.changes[evaluated.tails[:, 2]]
        bits = ((changes[:, 0] != NONE) * OLD | (changes[:, 1] != NONE) * NEW).astype(np.uint8)
        tail = evaluated.tail
        message = evaluated.event if is_sorted else order[evaluated.event]
        return Found(message, evaluated.slot, bits.take(tail), tail, events, evaluated, payload)

    def tails(self, found: Found) -> tuple[Int64Array, list[str]]:
        """(number of each pair's tail, [pairs]; the tails by number), for pairs that `match` found."""
        used, tail = np.unique(found.tail, return_inverse=True)
        if not len(used):
            return found.tail, []
        evaluated = found.evaluated
        tails = evaluated.tails[used]
        versions, changes = np.unique(evaluated.changes[tails[:, 2]], return_inverse=True)
        changes = changes.reshape(len(used), 2).astype(np.int64)
        if versions[0] == NONE:
            versions, changes = versions[1:], changes - 1
        # A select notification has exactly one change of one row.
        tails[:, 2], tails[:, 3] = np.arange(len(used)), np.arange(1, len(used) + 1)
        columns = {i for number in np.unique(tails[:, 1]).tolist() for i in self._columns[number]}
        rows = self._rows.shown(found.payload, versions, sorted(columns))
        part = Told(evaluated.who, evaluated.size, tails, changes)
        rendered = Tails()
        render(rendered, handles_of(rows), self._projections.handles, found.events.words, part)
        data, stops = rendered.text.tobytes(), rendered.ends.tolist()
        return tail.astype(np.int64), [
            data[start : stop - 1].decode() for start, stop in zip([0, *stops], stops, strict=False)
        ]

    def _projection(self, shown: tuple[int, ...]) -> int:
        number = self._numbers.get(shown)
        if number is None:
            number = self._projections.take([(0, 0, i, self.space.columns[i].name) for i in shown])
            self._numbers[shown] = number
            self._columns.append(shown)
        return number


def kept(found: Found, is_kept: BoolArray) -> Found:
    """The pairs with `is_kept`, [pairs]."""
    return replace(
        found,
        message=found.message[is_kept],
        slot=found.slot[is_kept],
        tags=found.tags[is_kept],
        tail=found.tail[is_kept],
    )
