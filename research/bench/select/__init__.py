"""The select bench: one equality and two ranges, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property, partial
from statistics import median
from typing import ClassVar

import numpy as np
import pyarrow as pa

from research.bench.churn import Churn, Timed, churn
from research.bench.inline import INLINE, InlineRun, flow, head, load
from research.bench.runner import SAMPLE, Bench, Ratio, run_bench
from research.bench.select.data import SelectData
from research.bench.select.peers import add_to
from research.bench.timing import each
from research.servers.message import MessageBatch
from research.stages.gateway import Gateway, GatewayWork
from research.strategies.select.reformulate import NEW
from tidings.bench.report import Figure
from tidings.bench.timing import timed
from tidings.kernels.stabbing import BoxShape, StabbingIndex
from tidings.model.blob import pack
from tidings.model.codes import Int64Array, codes_of_doubles

_INDEXED = 5_000


class SelectBench(Bench):
    title = "select: kind = ? AND a BETWEEN ? AND ? AND b BETWEEN ? AND ?"
    ratios = (
        # Peers keep no table and look for the new row only, as does the first of these; the second is what users get.
        Ratio("inline.match.changes_per_s", "ratio.match", "new rows to ids: index alone over the best peer"),
        Ratio(
            "inline.ids.changes_per_s",
            "ratio.ids",
            "changes to ids: inline with tables and old rows over the best peer",
        ),
    )
    inline_cases: ClassVar = {"select": INLINE}
    compared = f"matches of {SAMPLE:,} changes agree with ours"
    add_peers = staticmethod(add_to)
    expected: list[int] | None = None
    """How many subscriptions match each of the first changes, once the inline engine has seen them."""

    @cached_property
    def given(self) -> SelectData:
        return SelectData.make(self.size, self.options.changes, self.options.seed)

    def dataset(self, case: str, changes: int) -> SelectData:
        return self.given

    def inline_run(self, case: str) -> InlineRun:
        return InlineRun(self.given)

    def inline(self) -> list[Figure]:
        data, run = self.given, self.inline_run("select")
        (points,) = run.points
        blob = pack([{"points": points, "views": None}])
        figures = load(run, lambda: run.gateway.load(blob))
        self.say("filling the table and warming up")
        inserted = run.fill()
        updates = data.updates()
        first = run.route([next(updates)])
        self.expected = _matches(run.gateway, head(first[0], SAMPLE))
        run.gateway.apply(GatewayWork(messages=[head(batch, SAMPLE) for batch in first]))
        self.say("changes to messages, ids and notifications")
        figures += flow(run, updates)
        figures.append(_match(run, inserted))
        self.say("adding and dropping subscriptions")
        new = Churn.of(
            lambda count, seed: SelectData.make(count, 0, seed), data.seed, f"first answer out of {data.rows:,} rows"
        )
        return figures + churn(run, _index(data), new)

    def parts(self, start: int, at_a_time: int) -> Iterator[pa.RecordBatch]:
        """New rows of the changes."""
        for changes in self.given.updates():
            for at in range(start, len(changes) - at_a_time + 1, at_a_time):
                yield changes.rows.slice(at, at_a_time)
            start = 0


def _index(data: SelectData) -> Timed:
    """The stabbing index without what makes boxes of points: axis 0 has equalities, axes 1 and 2 have ranges."""
    index, shape = StabbingIndex(3), BoxShape((0,), (1, 2), ())
    kind = index.kind(shape, 0)
    index.add(shape, *_boxes(data, kind))
    owner, kinds, equal, texts, ends = _boxes(SelectData.make(_INDEXED, 0, data.seed + 1), kind)
    ones = [slice(i, i + 1) for i in range(_INDEXED)]
    new = [(owner[one], kinds[one], equal[one], texts, ends[one]) for one in ones]
    boxes: list[Int64Array] = []
    yield "index.add", "add one, index alone", each(lambda one: boxes.append(index.add(shape, *one)), new)
    yield "index.drop", "drop one, index alone", each(index.remove, boxes)


def _boxes(data: SelectData, kind: int) -> tuple[Int64Array, Int64Array, Int64Array, list[None], Int64Array]:
    """What `StabbingIndex.add` takes: owners, kinds, equality codes and their texts, ends of ranges."""
    ends = codes_of_doubles(np.stack([data.lo, data.hi], axis=2).reshape(data.size, 4))
    return np.arange(data.size), np.full(data.size, kind), data.kind[:, None], [None], ends


def _matches(gateway: Gateway, messages: MessageBatch) -> list[int]:
    """How many subscriptions match each new row: deliveries whose tag says that the new row is in."""
    pairs = gateway.pairs(messages)
    found: list[int] = np.bincount(pairs.message[(pairs.tags & NEW) != 0], minlength=len(messages)).tolist()
    return found


def _match(run: InlineRun, inserted: list[list[MessageBatch]]) -> Figure:
    """New rows to ids and nothing else: exactly what peers do."""
    found = [timed(lambda part: [run.gateway.pairs(batch) for batch in part], part)[0].wall for part in inserted]
    per_row = median(taken / sum(map(len, part)) for taken, part in zip(found, inserted, strict=True))
    return INLINE.figure("match.changes_per_s", "new rows to subscription ids, index alone", "changes/s", 1 / per_row)


run = partial(run_bench, SelectBench)
