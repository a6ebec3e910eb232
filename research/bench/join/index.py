"""The join server alone: changes to boxes and to whole messages, by every strategy, with counts and bytes of messages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from statistics import mean, median

from research.bench.dataset import BATCH
from research.bench.join.data import JoinData
from research.bench.join.replay import BaseSide, JoinReplay, JoinSubscribers, Tally, head, portions
from research.strategies.join.skylines import skyline_of
from tidings.bench import Say
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import timed
from tidings.model.codes import Int64Array

BUDGET_S = 3.0
"""Seconds for each strategy but the first."""
COUNTED_MAX = 20_000
"""The messages of this many changes are counted; all changes are timed."""
REACHED_MAX = 200
"""The receivers of this many changes are counted."""


@dataclass(frozen=True)
class Measured:
    """A strategy, and how many changes it is given at a time and at most."""

    strategy: str
    at_a_time: int = BATCH
    changes_max: int = 1_000_000

    @property
    def name(self) -> str:
        return self.strategy.removeprefix("ref-sj:")


OURS = Measured("ref-sj:clu")
OTHERS = (
    Measured("auto"),
    Measured("ref-sj:clu+"),
    Measured("ref-sj:tup"),
    Measured("ref-sj:tup+"),
    # These read all subscriptions that select a row.
    Measured("ref-sj:sub", 100, 300),
    Measured("ref-sj:min", 100, 300),
    Measured("rel-sel"),
    Measured("ref-j", 2_000, 20_000),
    Measured("ref-j+", 2_000, 20_000),
    # These make a message for each affected subscription.
    Measured("enum-sj", 20, 400),
    Measured("enum-j", 20, 400),
)
_BYTES_OVER = (("ref-j+", "clu"), ("ref-j+", "clu+"), ("enum-j", "clu"), ("enum-j", "clu+"), ("enum-sj", "clu"))
_POINTS_OVER = (("clu", "tup"), ("clu+", "tup"), ("tup+", "tup"), ("min", "tup+"))


def measure(data: JoinData, say: Say) -> Iterator[Figure]:
    say("base side alone")
    yield from _base(data)
    people = JoinSubscribers(data)
    tallies: dict[str, Tally] = {}
    for way in (OURS, *OTHERS):
        say(f"whole changes, {way.strategy}")
        played = _played(data, way, people)
        tallies[way.name] = played.tally
        yield from _figures(way, played)
    heading = Heading("index.ratio", "index")
    for name, other in _BYTES_OVER:
        ratio = tallies[name].bytes_over(tallies[other])
        yield heading.figure(f"bytes.{name}.{other}", f"bytes of {name} over {other}", "ratio", ratio)
    for name, other in _POINTS_OVER:
        ratio = tallies[name].points_over(tallies[other])
        yield heading.figure(f"points.{name}.{other}", f"skyline points of {name} over {other}", "ratio", ratio)


def _base(data: JoinData) -> Iterator[Figure]:
    """From codes and join values to boxes, with R's rows kept in order; medians over batches."""
    base = BaseSide(data, skyline_of(OURS.name))
    wall, cpu, draw, boxes = [], [], [], 0
    for batch in data.updates():
        rows = base.arrive(batch)
        taken, found = timed(base.play, rows)
        wall.append(taken.wall / len(batch))
        cpu.append(taken.cpu / len(batch))
        boxes += found
        insertions = rows.insertions()
        draw.append(timed(base.draw, insertions)[0].wall / len(insertions.value))
    heading = Heading("index.base", f"index, {OURS.strategy}, base side alone")
    yield heading.figure("changes_per_s", "changes to boxes", "changes/s", 1 / median(wall))
    yield heading.figure("changes_per_cpu_s", "changes to boxes", "changes/cpu s", 1 / median(cpu))
    yield heading.figure("insertions_per_s", "insertions to skylines", "insertions/s", 1 / median(draw))
    yield heading.figure("boxes", "boxes", "per change", boxes / data.scene.changes)


@dataclass(frozen=True)
class _Played:
    """Seconds per change, messages of the first COUNTED_MAX changes, receivers of the first REACHED_MAX."""

    wall: float
    cpu: float
    tally: Tally
    deliveries: float
    """Per change."""
    affected: float
    """Subscriptions per insertion."""


def _played(data: JoinData, way: Measured, people: JoinSubscribers) -> _Played:
    """Times are medians over batches. The first strategy gets all changes, others as many as they can make in their time."""
    replay, budget_s = JoinReplay(data, way.strategy), float("inf") if way is OURS else BUDGET_S
    wall, cpu, tallies, spent_s, counted = [], [], [], 0.0, 0
    deliveries: list[float] = []
    affected: list[int] = []
    for changes in portions(data, way.at_a_time, way.changes_max):
        taken, sent = timed(replay.play, changes)
        wall.append(taken.wall / len(changes))
        cpu.append(taken.cpu / len(changes))
        if counted < REACHED_MAX:
            few = changes.slice(0, min(len(changes), REACHED_MAX - counted))
            first = head(sent, few)
            deliveries.append(people.deliveries(first) / len(few))
            affected.extend(map(len, people.affected(few, first)))
        if counted < COUNTED_MAX:
            tallies.append(Tally.of(data.space, changes, sent))
            counted += len(changes)
        spent_s += taken.wall
        if spent_s > budget_s:
            break
    return _Played(median(wall), median(cpu), Tally.concat(tallies), mean(deliveries), mean(affected))


def _figures(way: Measured, played: _Played) -> Iterator[Figure]:
    figure, tally = Heading(f"index.{way.name}", f"index, {way.strategy}").figure, played.tally
    yield figure("changes_per_s", "changes to messages", "changes/s", 1 / played.wall)
    yield figure("changes_per_cpu_s", "changes to messages", "changes/cpu s", 1 / played.cpu)
    yield figure("messages", "messages", "per change", tally.messages.mean())
    yield figure("boxes", "boxes", "per change", tally.boxes.mean())
    yield figure("bytes", "bytes", "bytes/change", tally.bytes.mean())
    yield figure("deliveries", "messages received", "per change", played.deliveries)
    if way.strategy.startswith("ref-sj:"):
        yield figure("points", "skyline points", "per insertion", tally.points.sum() / tally.insertions.sum())
    if way is OURS:
        yield figure("exposed", "rows sent late", "per change", tally.exposed.mean())
        yield figure("affected", "subscriptions affected", "per insertion", played.affected)


def affected_by(data: JoinData, insertions: int) -> list[Int64Array]:
    """For each of the first insertions the numbers of the subscriptions it affects."""
    (changes,) = portions(data, 2 * insertions, 2 * insertions)
    return JoinSubscribers(data).affected(changes, JoinReplay(data, OURS.strategy).play(changes))
