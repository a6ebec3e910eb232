"""Views that come and go in a plan that follows them: how long one takes, and what becomes of those that lose an input."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice

from research.bench.relay.data import ViewSet
from research.bench.relay.stages import Outcome
from research.bench.timing import each
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import timed
from tidings.relay.document import Document
from tidings.relay.files import View
from tidings.relay.live import LiveRelay
from tidings.relay.plan import PUBLISHER
from tidings.relay.planning import NoRoom

_NEWCOMERS = 100
_FEEDERS, _DEPENDANTS = 10, 30
"""Views that are removed though they feed others, and about how many of these each has."""


def measure(outcome: Outcome, samples: Sequence[Document], seed: int) -> Iterator[Figure]:
    heading = Heading("change", "change")
    taken, live = timed(LiveRelay, outcome.planned(), samples)
    yield heading.figure("start_s", "a plan that follows changes, made", "s", taken.wall)
    count = len(outcome.prepared.views)
    patterns = islice(ViewSet(count + _NEWCOMERS).patterns(seed), count, None)
    newcomers = [View(f"new{number}", pattern) for number, pattern in enumerate(patterns)]
    refused: set[str] = set()

    def add(view: View) -> None:
        try:
            live.add(view)
        except NoRoom:
            refused.add(view.id)

    yield heading.figure("add_ms", "one view added", "ms", 1e3 * each(add, newcomers))
    there = [view for view in newcomers if view.id not in refused]
    by_others = sum(live.inputs(view.id) != (PUBLISHER,) for view in there)
    yield heading.figure("add_rewritten", "added views that others feed", "%", 100 * by_others / len(newcomers))
    yield heading.figure("remove_ms", "one of them removed", "ms", 1e3 * each(lambda view: live.remove(view.id), there))
    yield from _remove_feeders(outcome, live, heading)


def _remove_feeders(outcome: Outcome, live: LiveRelay, heading: Heading) -> Iterator[Figure]:
    fed = {view: len(views) for view, views in outcome.hastened.dependants.items() if view != PUBLISHER}
    chosen = sorted(fed, key=lambda view: abs(fed[view] - _DEPENDANTS))[:_FEEDERS]
    orphans: list[str] = []
    removed = 1e3 * each(lambda view: orphans.extend(live.remove(view)), chosen)
    label = f"a view removed that feeds {sum(fed[view] for view in chosen) / len(chosen):.0f} others"
    yield heading.figure("remove_feeder_ms", label, "ms", removed)
    left = [view for view in dict.fromkeys(orphans) if view not in chosen]
    by_others = sum(live.inputs(view) != (PUBLISHER,) for view in left)
    yield heading.figure("rehomed", "of these others, fed by views again", "%", 100 * by_others / max(1, len(left)))
