"""The inline engine on the select bench: the whole path, matching alone, and subscriptions that come and go."""

from __future__ import annotations

from dataclasses import dataclass, field
from statistics import median

import numpy as np

from tidings.bench import Say
from tidings.bench.churn import Churn, Timed, churn
from tidings.bench.inline_path import InlineRun, flow, head, load
from tidings.bench.report import Figure
from tidings.bench.select_data import SelectData
from tidings.bench.timing import each, timed
from tidings.families.registry import gathered
from tidings.families.select.matcher import Matcher
from tidings.families.select.reformulate import NEW
from tidings.families.select.table_form import table_space
from tidings.model.blob import pack
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch
from tidings.pipeline.deliver import Gateway, GatewayWork

SAMPLE = 200
"""So many changes are compared with the peers, match by match."""
_INDEXED = 5_000


@dataclass
class Measured:
    figures: list[Figure] = field(default_factory=list)
    sample_counts: Int64Array | None = None
    """How many subscriptions match the new row of each of the first changes."""


def measure(data: SelectData, say: Say) -> Measured:
    run = InlineRun(data)
    (points,) = run.points
    blob = pack([{"points": points, "views": None}])
    measured = Measured(figures=load(run, lambda: run.gateway.load(blob)))
    say("filling the table and warming up")
    inserted = run.fill()
    updates = data.updates()
    first = run.route([next(updates)])
    measured.sample_counts = _sample(run.gateway, first)
    run.gateway.apply(GatewayWork(messages=[head(batch, SAMPLE) for batch in first]))
    say("changes to messages, ids and notifications")
    measured.figures += flow(run, updates)
    measured.figures.append(_match(run, inserted))
    say("adding and dropping subscriptions")
    some, others = (SelectData.make(count, 0, data.seed + i) for i, count in enumerate((Churn.BULK, Churn.FROM_SQL), 1))
    rows = f"first answer out of {data.rows:,} rows"
    (created,) = gathered([some.points()], data.catalog)
    new = Churn(created, [others.sql(i) for i in range(others.size)], rows)
    measured.figures += churn(run, _index(data), new)
    return measured


def _index(data: SelectData) -> Timed:
    matcher = Matcher(table_space(data.catalog.table("items")))
    (points,) = gathered([data.points()], data.catalog)
    matcher.add(np.arange(data.size), points)
    (some,) = gathered([SelectData.make(_INDEXED, 0, data.seed + 1).points()], data.catalog)
    new = [(np.array([data.size + i]), some.take(np.array([i]))) for i in range(_INDEXED)]
    yield "index.add", "add one, index alone", each(lambda one: matcher.add(*one), new)
    yield "index.drop", "drop one, index alone", each(lambda one: matcher.remove(one[0]), new)


def _sample(gateway: Gateway, messages: list[MessageBatch]) -> Int64Array:
    """Matches of the new rows of the first changes: deliveries whose tag says that the new row is in."""
    batch = head(messages[0], SAMPLE)
    pairs = gateway.pairs(batch)
    return np.bincount(pairs.message[(pairs.tags & NEW) != 0], minlength=len(batch))


def _match(run: InlineRun, inserted: list[list[MessageBatch]]) -> Figure:
    """New rows to ids and nothing else: exactly what peers do."""
    found = [timed(lambda part: [run.gateway.pairs(batch) for batch in part], part)[0].wall for part in inserted]
    per_row = median(taken / sum(map(len, part)) for taken, part in zip(found, inserted, strict=True))
    return Figure(
        "inline.match.changes_per_s", "inline: new rows to subscription ids, index alone", "changes/s", 1 / per_row
    )
