"""The drift experiments run at tiny sizes and write what they promise; the paper's rule is the paper's rule."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from research.experiments.drift.__main__ import EXPERIMENTS, main
from research.experiments.drift.choice import between_musts

CONFIG = """
seed = 1
radii = {sizes = [300, 10_000], events = 500, baseline_events = 200}
same = {sizes = [300, 600], events = 500, baseline_events = 200}
arrivals = {subscriptions = 200, events = 300, rates = [0.0, 2.0]}
all = {sizes = [200, 400], events = 600}
stocks = {sizes = [200, 400], events = 600}
choice = {subscriptions = 300, events = 300, multiples = [1.5]}
"""


@pytest.mark.extended
def test_everything_is_written(tmp_path: Path) -> None:
    config, out = tmp_path / "config.toml", tmp_path / "out"
    config.write_text(CONFIG)
    main(["--config", str(config), "--out", str(out)])
    written = json.loads((out / "results.json").read_text())
    assert written["stamp"]["seed"] == 1 and set(written["measured"]) == set(EXPERIMENTS)
    for name, rows in written["measured"].items():
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
        assert all(value >= 0 for row in rows for value in row.values()), name
    radii = written["measured"]["radii"][-1]
    assert radii["ranges"] < radii["unicast"] and radii["region_bytes"] < radii["unicast_bytes"]
    page = (out / "README.md").read_text()
    assert "| published | measured |" in page and "| 1984 |" in page and "five stocks" in page


def test_unknown_experiments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nonesuch"])
    assert "radii" in capsys.readouterr().err


def test_the_papers_rule_tells_those_between_musts() -> None:
    # At 12, the first and the third must be told, the second and the last may: the last has nobody behind it.
    low, high = np.array([1.0, 2.0, 3.0, 4.0]), np.array([10.0, 50.0, 12.0, 60.0])
    ranges, told = between_musts(low, high, np.array([0.0, 12.0]))
    assert ranges.tolist() == [1] and told.tolist() == [3]
    # Whoever may not be told ends a run.
    low[1] = 13.0
    order = [0, 2, 1, 3]
    ranges, told = between_musts(low, high, np.array([0.0, 12.0, 12.0]))
    assert ranges.tolist() == [1, 0] and told.tolist() == [2, 0] and sorted(low)[-1] == low[order[2]]


def test_by_the_papers_rule_nobody_is_told_too_late_or_too_soon() -> None:
    rng = np.random.default_rng(7)
    low = rng.uniform(1, 20, 40)
    ranges, told = between_musts(low, low, 100 + np.cumsum(rng.normal(0, 3, 500)))
    wide, fewer = between_musts(low, 2 * low, 100 + np.cumsum(np.random.default_rng(7).normal(0, 3, 500)))
    assert 0 < fewer.sum() < told.sum() and 0 < wide.sum() < ranges.sum()
