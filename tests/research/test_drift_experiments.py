"""The drift experiments run at tiny sizes and write what they promise."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path

import pytest

from research.experiments import drift
from research.experiments.drift.__main__ import EXPERIMENTS, main
from research.experiments.drift.cases import CASES
from research.experiments.drift.pages import PICTURES
from research.experiments.drift.server_time import OF_CASE, timed

CONFIG = """
seeds = [1, 2]
radii = {sizes = [300, 10_000], events = 500, timed_after = 100, timed_events = 200}
same = {sizes = [300, 600], events = 500, timed_after = 100, timed_events = 200}
arrivals = {subscriptions = 200, events = 300, rates = [0.0, 0.5, 2.0]}
all = {sizes = [200, 400], events = 600, timed_after = 100, timed_events = 200}
stocks = {sizes = [200, 400], events = 600}
choice = {subscriptions = 300, events = 300, multiples = [1.5]}
unique = {subscriptions = 300, events = 300, multiples = [1.5]}
relative = {subscriptions = 300, events = 500}
"""
FOLDER = Path(drift.__file__).parent
OF_LARGE = {"figure6.end_points", "figure6.tree", "table2.late", "figure8.flat", "stress.unicast_same"}
"""Claims about sizes that are not run here."""


@pytest.mark.extended
def test_everything_is_written(tmp_path: Path) -> None:
    config, out = tmp_path / "config.toml", tmp_path / "out"
    config.write_text(CONFIG)
    main(["--config", str(config), "--out", str(out)])
    written = json.loads((out / "results.json").read_text())
    assert written["stamp"]["seed"] == 1 and set(written["measured"]) == set(EXPERIMENTS)
    for name in PICTURES:
        assert (out / f"{name}.png").read_bytes().startswith(b"\x89PNG")
    said = {claim["claim"] for claim in tomllib.loads((FOLDER / "claims.toml").read_text())["claim"]}
    assert written["claims"].keys() == said
    untold = {name.removeprefix("drift.") for name, values in written["claims"].items() if None in values}
    assert untold == OF_LARGE
    assert all(len(values) == 2 for values in written["claims"].values())
    radii = written["measured"]["radii"][-1]
    assert radii["ranges"] < radii["unicast"] and radii["region_bytes"] < radii["unicast_bytes"]
    page = (out / "README.md").read_text()
    assert "| 10,000 |" in page and "five stocks" in page


@pytest.mark.extended
def test_structures_tell_the_same() -> None:
    for case, names in OF_CASE.items():
        timeline, begin = CASES[case]({"events": 400}, 500, 2)
        lists = {name: timed(timeline, begin + 100, name).made for name in names if name not in ("tree", "scan")}
        assert len(set(lists.values())) == 1 and min(lists.values()) > 0, lists
        ranges = {name: timed(timeline, begin + 100, name).made for name in names if name in ("tree", "scan")}
        assert len(set(ranges.values())) == 1 and 0 < min(ranges.values()) <= min(lists.values()), ranges


def test_unknown_experiments_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["nonesuch"])
    assert "radii" in capsys.readouterr().err
