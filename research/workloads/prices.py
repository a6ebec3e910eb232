"""Prices of five real stocks up to 1 March 2013, as the package bokeh_sampledata brings them.

The package is under BSD-3-Clause; the prices are from Quandl WIKI, which declared them to be in the public domain.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from tidings.model.codes import BoolArray
from tidings.model.errors import UsageError
from tidings.workloads.draws import FloatArray

SYMBOLS = ("AAPL", "FB", "GOOG", "IBM", "MSFT")
_SPLIT = 1.4
"""Above this an adjustment is for a split, such as two shares for one; the largest of a dividend here is 1.11."""


class History(NamedTuple):
    """An element per trading day."""

    opened: FloatArray
    closed: FloatArray
    is_split: BoolArray
    """For every day but the first: whether the stock was split. The price is then restated, but nothing has moved."""


def history(symbol: str) -> History:
    try:
        from bokeh_sampledata import stocks
    except ImportError:
        raise UsageError("workloads of stocks need their prices: pip install '.[research]' in the clone") from None
    opened, closed, adjusted = (
        np.array(getattr(stocks, symbol)[name], np.float64) for name in ("open", "close", "adj_close")
    )
    adjustment = closed / adjusted
    return History(opened, closed, adjustment[:-1] / adjustment[1:] > _SPLIT)
