"""The points of living subscriptions, kept by a replica for its dump."""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import grow
from tidings.kernels.rows import I64
from tidings.model.points import PointBatch
from tidings.pipeline.replica.subscriptions import Subscriptions

_BATCHES_MAX = 256
"""With more batches than this, the points of a form are joined into one batch and dropped subscriptions are left out."""
_DEAD_MIN = 256


class HeldPoints:
    """Points in batches by form, as they came. `len()` counts them, those of dropped subscriptions included.

    Points of dropped subscriptions are left out when they are more than half of all, so that they are never more than the
    living ones and _DEAD_MIN, whichever forms they are of; with the last living one all go.
    """

    def __init__(self, subscriptions: Subscriptions) -> None:
        self._subscriptions = subscriptions
        self._batches: dict[str, list[tuple[PointBatch, I64, I64]]] = {}
        """Form -> (points, slots, serials) in batches."""
        self._points_of = np.zeros(0, np.int64)
        """[slots]: points of the slot's subscription."""
        self._count = 0
        self._dead = 0
        self.nbytes = 0
        """Approximate bytes of all points held."""

    def __len__(self) -> int:
        return self._count

    @property
    def forms(self) -> int:
        """Number of forms of which points are held."""
        return len(self._batches)

    def add(self, points: PointBatch, slots: I64) -> None:
        """Keeps points of one form. slots: [points], their subscriptions."""
        grow(self._points_of, int(slots.max(initial=-1)) + 1)
        if points.home.all():
            self._points_of[slots] += 1
        else:
            np.add.at(self._points_of, slots, 1)
        self._keep(points, slots)
        if len(self._batches[points.form]) > _BATCHES_MAX:
            self._leave_out_dead(points.form)

    def drop(self, slots: I64) -> None:
        """Called with the slots of dropped subscriptions, when these are free and before they are used again."""
        slots = slots[slots < len(self._points_of)]
        self._dead += int(self._points_of[slots].sum())
        self._points_of[slots] = 0
        if self._dead == self._count:
            self._batches.clear()
            self._count = self._dead = self.nbytes = 0
        elif self._dead > _DEAD_MIN and 2 * self._dead > self._count:
            for form in list(self._batches):
                self._leave_out_dead(form)

    def living(self) -> list[tuple[PointBatch, I64]]:
        """(points, their slots) of all living subscriptions, one entry per form."""
        found = [self._living(held) for held in self._batches.values()]
        return [(points, slots) for points, slots in found if len(slots)]

    def _keep(self, points: PointBatch, slots: I64) -> None:
        self._batches.setdefault(points.form, []).append((points, slots, self._subscriptions.serial[slots]))
        self._count += len(points)
        self.nbytes += points.nbytes + 2 * slots.nbytes

    def _leave_out_dead(self, form: str) -> None:
        held = self._batches.pop(form)
        before = sum(len(part[0]) for part in held)
        self._count -= before
        self.nbytes -= sum(part[0].nbytes + 2 * part[1].nbytes for part in held)
        points, slots = self._living(held)
        self._dead -= before - len(points)
        if len(points):
            self._keep(points, slots)

    def _living(self, held: list[tuple[PointBatch, I64, I64]]) -> tuple[PointBatch, I64]:
        known = self._subscriptions
        slots = np.concatenate([part[1] for part in held])
        serials = np.concatenate([part[2] for part in held])
        points = PointBatch.joined([part[0] for part in held])
        is_living = known.is_taken(slots) & (known.serial[slots] == serials)
        return points.take(is_living), slots[is_living]
