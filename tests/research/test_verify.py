"""The verifier finds nothing wrong where all is right, and notices what is not."""

from __future__ import annotations

from collections import Counter

import pytest

from research.bench.drift import DriftBench
from research.bench.join import JoinBench
from research.bench.runner import Bench
from research.bench.topk import TopkBench
from research.bench.verify import compare
from research.strategies.join.semijoin.shared import SharedSemijoin


@pytest.mark.extended
@pytest.mark.parametrize(("bench", "changes"), [(DriftBench, 250), (TopkBench, 150), (JoinBench, 80)])
def test_every_strategy_is_right(bench: type[Bench], changes: int) -> None:
    assert bench.verified is not None
    figures = {figure.key: figure.value for figure in bench.verified.figures(changes, 6)}
    told = {figures[f"verify.{name}.told"] for name in bench.verified.strategies()}
    assert len(told) == 1 and told.pop() > bench.verified.subscriptions
    assert figures[f"verify.{bench.verified.strategies()[0]}.differences"] == 0


@pytest.mark.extended
def test_missing_messages_are_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SharedSemijoin, "_joined_late", lambda *_: iter(()))
    with pytest.raises(AssertionError, match=r"ref-sj:tup: \d+ of the answers in 100 changes differ"):
        list(JoinBench.verified.figures(100, 6, ["ref-sj:tup"]))


def test_what_is_told_for_nothing_is_noticed() -> None:
    expected = {(0, "s"): Counter(), (2, "s"): Counter([(1,)])}
    first = {"subscription": "s", "seq": 0, "snapshot": True, "changes": []}
    right = {"subscription": "s", "seq": 2, "snapshot": False, "changes": [{"op": "insert", "row": {"id": 1}}]}
    assert compare(expected, [first, right]) == (0, 2)
    nothing = {**right, "seq": 3, "changes": [{"op": "update", "old": {"id": 1}, "row": {"id": 1}}]}
    assert compare(expected, [first, right, nothing]) == (1, 3)
    assert compare(expected, [first]) == (1, 1)
    ghost = {**right, "changes": [*right["changes"], {"op": "delete", "row": {"id": 7}}]}  # type: ignore[misc]
    assert compare(expected, [first, ghost]) == (1, 2)
