"""The select bench: one equality and two ranges, at growing numbers of subscriptions."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from tidings.bench import Options, Say, inline_path
from tidings.bench.inline_path import Measured
from tidings.bench.report import Figure, Report, short, shown
from tidings.bench.select_data import SelectData
from tidings.bench.select_peers import Peers
from tidings.bench.stamp import describe, stamp
from tidings.bench.timing import load_average
from tidings.cli.terminal import warm_kernels
from tidings.model.errors import UsageError

Measure = Callable[[SelectData, Say], Measured]

ENGINES: dict[str, Measure] = {"inline": inline_path.measure}

OURS = "inline.ids.changes_per_s"
"""What peers are compared with: they too give, for each change, the ids of the subscriptions it matches."""


def run(options: Options, say: Say) -> Report:
    engines = options.engines or tuple(ENGINES)
    for name in engines:
        if name not in ENGINES:
            raise UsageError(f"unknown engine {name!r}; there are: {', '.join(ENGINES)}")
    warm_kernels()
    report = Report("select: kind = ? AND a BETWEEN ? AND ? AND b BETWEEN ? AND ?", options.sizes, stamp(options.seed))
    report.notes.append(describe(report.stamp))
    _warm_up(engines, options, say)
    with Peers.start(options.has_peers, say) as peers:
        for size in options.sizes:
            _measure_size(report, size, engines, peers, options, say)
    report.stamp["load_average_end"] = load_average()
    return report
