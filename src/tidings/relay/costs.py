"""What it takes to feed a view, in bytes: the costs and delays of a planner's columns.

A column is one way to compute a view, from the views that are its sources, or, if it has none, from the publisher. Its cost is

    input bytes + INPUT_ID * input ids + OUTPUT_BYTE * output bytes          from sources
    PUBLISHER_BYTE * document bytes + PUBLISHER_VIEW + OUTPUT_BYTE * output bytes    from the publisher

with the sizes of messages as in `sizes.py`. A view that the publisher feeds is matched against whole documents, in the one
place that all depend on: this is meant to be dearer than almost any rewriting. Where views know a part of what a view asks for,
the publisher's part is added (`partial.py`).
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import F64, I32, I64
from tidings.relay.sizes import ViewSizes

INPUT_ID = 4.0
"""Bytes that could be received in the time in which an id of an input is joined with others."""
OUTPUT_BYTE = 1.0
"""A byte that is written costs as much as one that is read. All columns of a view have the same output."""
PUBLISHER_BYTE = 1.0
"""A view that the publisher feeds has the whole document as its input."""
PUBLISHER_VIEW = 2_000.0
"""Of matching one more view, whatever the document: small documents do not make the publisher the cheapest source."""

DELAY = 0.05
"""Of any computation, in hops: the time from one site to another."""
DELAY_ID = 5e-5
"""Per id of an input: about a microsecond, with hops of 20 ms."""


def column_costs(sizes: ViewSizes, nodes: I32 | I64, first_source: I64, sources: I32) -> F64:
    """float64[columns]. nodes: the view that each column computes. Its sources are sources[first_source[j] :
    first_source[j + 1]]; a column that has none is the publisher's."""
    inputs = _source_sums(sizes.bytes + INPUT_ID * sizes.ids, first_source, sources, published_cost(sizes))
    return inputs + OUTPUT_BYTE * sizes.bytes[nodes]


def published_cost(sizes: ViewSizes) -> float:
    """Of a whole document as an input."""
    return PUBLISHER_BYTE * sizes.document_bytes + PUBLISHER_VIEW


def column_delays(sizes: ViewSizes, first_source: I64, sources: I32) -> F64:
    """float64[columns], in hops: computation only. The publisher matches all of its views at once: none waits for another."""
    return DELAY + DELAY_ID * _source_sums(sizes.ids, first_source, sources, 0.0)


def _source_sums(prices: F64, first_source: I64, sources: I32, no_sources: float) -> F64:
    """Per column, the sum of its sources' prices."""
    found = np.full(len(first_source) - 1, no_sources)
    has_sources = first_source[1:] > first_source[:-1]
    if len(sources):
        found[has_sources] = np.add.reduceat(prices[sources], first_source[:-1][has_sources])
    return found
