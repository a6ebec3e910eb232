"""The inline engine on the drift bench: the whole path, and subscriptions that come and go."""

from __future__ import annotations

import numpy as np

from tidings.bench import Say
from tidings.bench.churn import Churn, Timed, churn
from tidings.bench.drift_cases import CASES, Case
from tidings.bench.drift_data import DriftData
from tidings.bench.drift_player import Player
from tidings.bench.inline_path import InlineRun, flow, load
from tidings.bench.report import Figure, Heading
from tidings.bench.timing import timed
from tidings.families.drift.kernels.threshold_index import CHOOSE
from tidings.pipeline.deliver import GatewayWork


def heading_of(name: str) -> Heading:
    return Heading(f"inline.{name}", f"inline, {CASES[name].label}")


def measure(name: str, data: DriftData, seed: int, say: Say, *, has_churn: bool) -> list[Figure]:
    """One case whose subscriptions are all there from the start."""
    heading = heading_of(name)
    run = InlineRun(data)
    say(f"{CASES[name].label}: filling the gateway")
    figures = load(run, lambda: run.gateway.apply(GatewayWork(points=run.points)), heading)
    for messages in run.fill():
        run.gateway.apply(GatewayWork(messages=messages))
    say(f"{CASES[name].label}: changes to messages, ids and notifications")
    updates = data.updates()
    run.gateway.apply(GatewayWork(messages=run.route([next(updates)])))
    figures += flow(run, updates, heading)
    if has_churn:
        say("adding and dropping subscriptions")
        figures += churn(run, _index(CASES[name], data, seed), _new(CASES[name], seed), heading)
    return figures


def _new(case: Case, seed: int) -> Churn:
    some, others = (case.make(count, 1, seed + i) for i, count in enumerate((Churn.BULK, Churn.FROM_SQL), 1))
    return Churn(DriftData(some).points(), [others.sql(i) for i in range(others.size)], "told the current row")


def _index(case: Case, data: DriftData, seed: int) -> Timed:
    """In an index that has made all moves."""
    player = Player(data.timeline)
    player.play(data.timeline.moves)
    reach = case.make(Churn.BULK, 1, seed + 1).member_reach
    audience, choose = np.zeros(len(reach), np.int64), np.full(len(reach), CHOOSE)
    adding, label = timed(player.anchors.add, audience, reach, choose)
    yield "index.add", f"add {len(reach):,} at once, index alone", adding.wall / len(reach)
    dropping, _ = timed(player.anchors.remove, audience, reach, label)
    yield "index.drop", f"drop {len(reach):,} at once, index alone", dropping.wall / len(reach)
