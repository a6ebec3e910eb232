"""The network bench: the content-driven network at the size of the papers, and under faults, seed after seed.

A column is a number of points. `scale` simulates 1,000 brokers on a network of 20,000 nodes: points are pairs of ranges, as of
selections on two attributes; a message is a tuple with a skyline of eight partners. `faults` runs many small networks in which
everything goes wrong that can, and a few of them without each of the rules of the payload cache. It is wrong if anything was
lost, told twice, told without the payload, or never acknowledged with all rules.
"""

from __future__ import annotations

import resource
from dataclasses import fields, replace

import numpy as np

from tidings.bench import Options, Say, known_names
from tidings.bench.report import Figure, Heading, Report
from tidings.bench.stamp import describe, stamp
from tidings.bench.timing import timed
from tidings.kernels.arrays import I64, INT64_MAX, INT64_MIN
from tidings.network.payload_cache import Rules
from tidings.simulator.config import Config, Faults
from tidings.simulator.files import Traffic
from tidings.simulator.simulation import Simulation

CASES = ("scale", "faults")
SCALE = Config(brokers=1_000, nodes=20_000)
FAULTS = Faults(loss=0.02, delay_ms=(1.0, 50.0), restarts=6, partitions=1, evictions=5, splits=3, merges=2)
FAULTY = Config(brokers=48, nodes=400, cache_bytes=5_000, plain_brokers=0.25, faults=FAULTS)
_BOXES = 8
_PAYLOAD_BYTES = 1_000
_CHANGES_PER_MESSAGE = 10
"""--changes counts for both cases: a tenth of them are messages in `scale`, .."""
_CHANGES_PER_SEED = 100
""".. and one in a hundred is a seed in `faults`."""
_SEEDS_PER_RULE = 50


def run(options: Options, say: Say) -> Report:
    messages, seeds = options.changes // _CHANGES_PER_MESSAGE, options.changes // _CHANGES_PER_SEED
    title = f"network: scale, {messages:,} messages through {SCALE.brokers:,} brokers; faults, {seeds:,} seeds"
    report = Report(title, options.sizes, stamp(options.seed))
    report.notes.append(describe(report.stamp))
    cases = known_names("case", options.cases, CASES)
    if "scale" in cases:
        # The first run loads the kernels.
        _scale(1_000, 10, options.seed)
        for points in options.sizes:
            say(f"scale: {points:,} points")
            figures, is_right = _scale(points, messages, options.seed)
            report.add(points, figures)
            report.is_wrong |= not is_right
    if "faults" in cases:
        say(f"faults: {seeds:,} seeds, and {min(seeds, _SEEDS_PER_RULE)} without each rule")
        figures, is_right = _faults(seeds, options.seed)
        report.add(options.sizes[0], figures)
        report.is_wrong |= not is_right
        report.notes.append("faults: networks of 48 brokers and 1,000 points, in the first column whatever its size.")
    report.notes.append(
        "Seconds are of the processor. Unicast sends a message for each point from the server; counted."
    )
    return report


def _scale(points: int, messages: int, seed: int) -> tuple[list[Figure], bool]:
    traffic = joined(points, messages, seed)
    made, simulation = timed(Simulation, SCALE, traffic, seed)
    ran, _ = timed(simulation.run)
    result, outcome = simulation.result(), simulation.outcome
    overlay, unicast = result["overlay_bytes"], result["overlay_bytes_with_last_hop"] - result["overlay_bytes"]
    heading = Heading("scale", "scale")
    return [
        heading.figure("setup_s", "to set up", "s", made.cpu),
        heading.figure("run_s", "to run", "s", ran.cpu),
        heading.figure("message_us", "an overlay message", "us", 1e6 * ran.cpu / max(result["overlay_messages"], 1)),
        heading.figure("messages", "overlay messages an event", "", result["overlay_messages"] / messages),
        heading.figure("deliveries", "points an event", "", result["deliveries"] / messages),
        heading.figure("bytes", "overlay bytes over unicast", "", overlay / max(unicast, 1)),
        heading.figure("memory", "most memory of the process so far", "MB", _peak_bytes() / 1e6),
    ], outcome.is_right


def _faults(seeds: int, first: int) -> tuple[list[Figure], bool]:
    wrong = sum(not _is_right(seed, FAULTY) for seed in range(first, first + seeds))
    figures = [Figure("faults.wrong", f"faults: seeds with a mistake, of {seeds:,}", "seeds", wrong)]
    tried = min(seeds, _SEEDS_PER_RULE)
    for rule in (entry.name for entry in fields(Rules)):
        without = replace(FAULTY, rules=Rules(**{rule: False}))
        lost = sum(not _is_right(seed, without) for seed in range(first, first + tried))
        figures.append(Figure(f"faults.{rule}", f"faults: without {rule}, of {tried}", "seeds", lost))
    return figures, not wrong


def _is_right(seed: int, config: Config) -> bool:
    simulation = Simulation(config, scattered(seed), seed)
    simulation.run()
    return simulation.outcome.is_right


def joined(points: int, messages: int, seed: int) -> Traffic:
    """Selections by two ranges, as (lo, hi, lo, hi); a message is a value of the first attribute and a skyline of the other."""
    rng = np.random.default_rng(seed)

    def centres(count: int, spread: int) -> np.ndarray:
        return rng.choice([25_000, 75_000], count) + rng.normal(0, spread, count)

    ends = []
    for spread, width, width_spread in ((13_000, 4_000, 1_500), (7_500, 2_500, 1_000)):
        centre, length = centres(points, spread), np.abs(rng.normal(width, width_spread, points))
        ends += [centre - length / 2, centre + length / 2]
    coords = np.column_stack(ends).astype(np.int64)
    lo, hi = np.full((messages, _BOXES, 4), INT64_MIN), np.full((messages, _BOXES, 4), INT64_MAX)
    # A range holds a value if it begins at or below it and ends at or above.
    hi[:, :, 0] = lo[:, :, 1] = centres(messages, 13_000).astype(np.int64)[:, None]
    hi[:, :, 2] = lo[:, :, 3] = rng.normal(50_000, 20_000, (messages, _BOXES)).astype(np.int64)
    return _traffic(coords, list(zip(lo, hi, strict=True)), np.arange(messages), 10.0, _PAYLOAD_BYTES)


def scattered(seed: int) -> Traffic:
    """150 messages with few payloads, for 1,000 points in the plane: at brokers that have had a payload, and at others."""
    rng = np.random.default_rng(seed)
    lo = [rng.integers(0, 1_000, (int(rng.integers(1, 4)), 2)) for _ in range(150)]
    boxes = [(low, low + rng.integers(0, 200, low.shape)) for low in lo]
    return _traffic(rng.integers(0, 1_000, (1_000, 2)), boxes, rng.integers(0, 30, 150), 30.0, 500)


def _traffic(points: I64, boxes: list[tuple[I64, I64]], payload: I64, gap_ms: float, size: int) -> Traffic:
    count = len(boxes)
    at = [gap_ms * number for number in range(count)]
    return Traffic(range(len(points)), points, range(count), at, boxes, payload.tolist(), [size] * count)


def _peak_bytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
