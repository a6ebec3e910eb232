"""Strategy `relational` of offers: publications are matched with subscriptions by Spark SQL, a query a micro-batch.

The paper's architecture in place of the index, for comparison: everything else of the family is as it is.
"""

from __future__ import annotations

import atexit
import sys
from contextlib import ExitStack
from functools import cache

import numpy as np
from pyspark.sql import DataFrame, SparkSession

from research.strategies.offers.spark_matching import match_reified, reified_packed
from tidings.families.evaluator import Store
from tidings.families.offers.constraint import unpack
from tidings.families.offers.evaluator import Offers, OffersEvaluator
from tidings.families.offers.kernels.packed import CONSTRAINT
from tidings.families.offers.kernels.rankings import IS_HIGHEST, LIMIT, ORDER_AXIS
from tidings.families.offers.matching import attained
from tidings.kernels.arrays import I64
from tidings.kernels.lives import Lives
from tidings.model.catalog import Catalog
from tidings.model.points import PointBatch
from tidings.spark.session import spark_session


def relational(catalog: Catalog, store: Store) -> RelationalEvaluator:
    """Matches on the Spark session of this process; on one of its own, which ends with the process, if there is none."""
    return RelationalEvaluator(SparkSession.getActiveSession() or _session(), catalog, store)


@cache
def _session() -> SparkSession:
    stack = ExitStack()
    atexit.register(stack.close)
    return stack.enter_context(spark_session("tidings research", "local[*]"))


class RelationalEvaluator(OffersEvaluator):
    """Matches by Spark SQL over tables of predicates."""

    publications_min = sys.maxsize

    def __init__(self, spark: SparkSession, catalog: Catalog, store: Store) -> None:
        super().__init__(catalog, store)
        self._spark = spark
        self._packed: dict[int, bytes] = {}
        """Slot -> packed constraint."""
        self._frames: dict[str, DataFrame] = {}
        """Table -> rows of all its subscriptions, until one comes or goes."""

    def add(self, points: PointBatch, slots: I64, lives: Lives) -> None:
        super().add(points, slots, lives)
        self._packed.update(zip(slots.tolist(), points.details.to_pylist(), strict=True))
        self._forget()

    def remove(self, slots: I64) -> None:
        super().remove(slots)
        for slot in slots.tolist():
            self._packed.pop(slot, None)
        self._forget()

    def _forget(self) -> None:
        for frame in self._frames.values():
            frame.unpersist()
        self._frames.clear()

    def _match(self, offers: Offers, versions: I64, *, is_fresh: bool) -> tuple[I64, I64]:
        packed = [self._store.texts_of(version)[CONSTRAINT] for version in versions.tolist()]
        publications = reified_packed(
            self._spark, offers.table, [(str(number), data) for number, data in enumerate(packed)]
        )
        subscriptions = self._subscriptions(offers, is_fresh=is_fresh)
        found = match_reified(self._spark, offers.table, publications, subscriptions).toArrow()
        pairs = np.array([found.column(i).to_pylist() for i in range(2)], np.int64).reshape(2, -1).T
        ranks = np.zeros(len(pairs), np.int64)
        lists = self._rankings.lists
        for i in np.flatnonzero(lists[pairs[:, 1], LIMIT] > 0).tolist():
            of, slot = pairs[i].tolist()
            ranks[i] = self._rank(packed[of], slot, offers)
        return pairs, ranks

    def _subscriptions(self, offers: Offers, *, is_fresh: bool) -> DataFrame:
        if is_fresh:
            slots = {slot for own, _ in offers.fresh for slot in own.tolist()}
            return reified_packed(self._spark, offers.table, [(str(slot), self._packed[slot]) for slot in slots])
        name = offers.table.name
        if name not in self._frames:
            own = [(str(slot), self._packed[slot]) for slot in offers.index.owners().tolist()]
            self._frames[name] = reified_packed(self._spark, offers.table, own).persist()
        return self._frames[name]

    def _rank(self, publication: bytes, slot: int, offers: Offers) -> int:
        own = self._rankings.lists[slot]
        is_highest = bool(own[IS_HIGHEST])
        best = attained(
            unpack(publication),
            unpack(self._packed[slot]),
            int(own[ORDER_AXIS]),
            is_highest=is_highest,
            is_classic=offers.table.constraints.is_classic,
        )
        assert best is not None, "only matches are ranked"
        return ~best if is_highest else best
