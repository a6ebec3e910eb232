"""The plain strategies beside the rankings: `unicast` and `relax`, with the same rows, people and changes.

`unicast` finds the ids of all those whom a change concerns, `relax` those of all whose range has the changed row: what
these strategies do before they make a message for each.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from tidings.bench.report import Figure, Heading
from tidings.bench.timing import spent
from tidings.bench.topk_audience import Audience
from tidings.bench.topk_player import Player
from tidings.model.codes import CODE_MAX, CODE_MIN, codes_of_doubles
from tidings.workloads.topk.scene import Scene

CHANGES_AT_A_TIME = 10


class Unicast:
    """Boxes as the rankings find them, and all points in each."""

    def __init__(self, scene: Scene, audience: Audience) -> None:
        self._player, self._forest = Player(scene), audience.forest

    def __call__(self, count: int) -> int:
        """Makes so many changes; gives how many messages there are to send."""
        sends = self._player.play(count).sends
        nobody, tags = np.zeros(len(sends.entry), np.int64), np.ones(len(sends.box_lo), np.uint8)
        return len(self._forest.stab(nobody, sends.box_lo, sends.box_hi, tags, sends.box_starts)[1])


class Relax:
    """All points whose range has the changed row; nothing is ranked."""

    def __init__(self, scene: Scene, audience: Audience) -> None:
        self._x, self._forest = codes_of_doubles(scene.place)[scene.changed], audience.forest
        self._at = 0

    def __call__(self, count: int) -> int:
        x = self._x[self._at : self._at + count]
        self._at += len(x)
        lo = np.stack([np.full(len(x), CODE_MIN), x], axis=1)
        hi = np.stack([x, np.full(len(x), CODE_MAX)], axis=1)
        zeros, tags = np.zeros(len(x), np.int64), np.ones(len(x), np.uint8)
        return len(self._forest.stab(zeros, lo, hi, tags, np.arange(len(x) + 1))[1])


BASELINES: dict[str, Callable[[Scene, Audience], Unicast | Relax]] = {"unicast": Unicast, "relax": Relax}


def measure(
    scene: Scene, audience: Audience, ours_us: dict[str, float], heading: Heading, budget_s: float
) -> Iterator[Figure]:
    """`ours_us`: microseconds of a change by the ways of the rankings, by name."""
    for name, make in BASELINES.items():
        change = make(scene, audience)
        calls, taken = spent(budget_s, change, [CHANGES_AT_A_TIME] * (scene.changes // CHANGES_AT_A_TIME))
        per_change = taken.wall / (calls * CHANGES_AT_A_TIME)
        yield heading.figure(f"{name}.changes_per_s", f"strategy {name}, ids found", "changes/s", 1 / per_change)
        for ours, us in ours_us.items():
            ratio = per_change * 1e6 / us
            yield heading.figure(f"{name}.{ours}.ratio", f"{ours} over {name}", "ratio", ratio)
