"""The arrays of a model as compiled code gets them."""

from __future__ import annotations

from typing import NamedTuple

from tidings.kernels.arrays import F64, I32, I64, Bools, Float, Int


class Rows(NamedTuple):
    """Who uses which contested capacity. A row is a capacity or a bandwidth, of a pool or of the publisher, that could be
    exceeded. Units of a bandwidth are bytes per document."""

    first_column: I64
    """[nodes + 1]"""
    node_of: I32
    """[columns]"""
    first_use: I64
    """[columns + 1]"""
    use_row: I32
    """[uses]"""
    use_units: I32
    """[uses]"""
    first_user: I64
    """[rows + 1]"""
    user_column: I32
    """[uses], ascending within a row."""
    user_units: I32
    """[uses]"""
    capacity: I64
    """[rows]"""
    columns_max: Int
    """The most columns of one node."""


class Places(NamedTuple):
    """What latencies depend on, of nodes and columns."""

    first_source: I64
    """[columns + 1]"""
    sources: I32
    """[nonzeros]"""
    is_published: Bools
    """[columns]: whether the publisher is an input."""
    site: I32
    """[nodes]"""
    position: F64
    """[nodes, 2]"""
    from_publisher: F64
    """[nodes]: distances"""
    delay: F64
    """[columns]"""
    hop: Float
    """The distance between places of which one is not known."""
