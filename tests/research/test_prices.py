"""Workloads of real stocks say what to install where their prices are missing."""

from __future__ import annotations

import sys

import pytest

from research.workloads import WORKLOADS, find
from research.workloads.topk.stocks import _moves
from tidings.model.errors import UsageError


@pytest.mark.parametrize("name", [name for name in WORKLOADS if name.endswith("-stocks")])
def test_stocks_missing_says_what_to_install(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    _moves.cache_clear()
    monkeypatch.setitem(sys.modules, "bokeh_sampledata", None)
    with pytest.raises(UsageError, match=r"^workloads of stocks need [^\n]*pip install '\.\[research\]' in the clone$"):
        list(find(name).load()(seed=0, rows=0, subscriptions=1, changes=50).changes)
