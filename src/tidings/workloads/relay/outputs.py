"""The files of the relay workloads: views and sites."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import islice

import numpy as np

from tidings.model.errors import UsageError
from tidings.workloads.relay.views import distinct_views, repeated_views
from tidings.workloads.workload import Output


def views(
    *,
    seed: int = 0,
    views: int = 100_000,
    distinct: int | None = None,
    sites: int | None = None,
    capacity: int | None = None,
) -> tuple[Output, ...]:
    """distinct: how many differ, all unless it is given. sites: among how many they are spread; each its own unless given.

    capacity: what every site may feed.
    """
    if distinct is not None and distinct > views:
        raise UsageError(f"--distinct {distinct} of --views {views}: no more can differ than there are")
    if capacity is not None and sites is None:
        raise UsageError("--capacity is what each site may feed: say how many --sites there are")
    made = [Output("views", views, {"views.jsonl": _view_lines(seed, views, distinct, sites)})]
    if sites is not None:
        made.append(Output("sites", sites, {"sites.jsonl": _site_lines(seed, sites, capacity)}))
    return tuple(made)


def _view_lines(seed: int, views: int, distinct: int | None, sites: int | None) -> Iterator[bytes]:
    is_repeated = distinct is not None and distinct < views
    patterns = repeated_views(seed, views, distinct or views) if is_repeated else islice(distinct_views(seed), views)
    rng = np.random.default_rng([seed, 2])
    places = [None] * views if sites is None else rng.integers(1, sites + 1, size=views).tolist()
    for number, (pattern, place) in enumerate(zip(patterns, places, strict=True), 1):
        record = {"id": f"v{number}", "pattern": pattern.text}
        if place is not None:
            record["site"] = f"s{place}"
        yield json.dumps(record).encode()


def _site_lines(seed: int, sites: int, capacity: int | None) -> Iterator[bytes]:
    positions = np.random.default_rng([seed, 3]).random((sites, 2)).round(4).tolist()
    for number, (x, y) in enumerate(positions, 1):
        feeds = {} if capacity is None else {"capacity": capacity}
        yield json.dumps({"id": f"s{number}", **feeds, "x": x, "y": y}).encode()
