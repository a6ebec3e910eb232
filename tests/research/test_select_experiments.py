"""The experiment on bulky columns runs at tiny sizes, and its claims are those that are written down."""

import json
import tomllib

from research.experiments.select import photos
from research.experiments.select.__main__ import HERE, main
from research.experiments.select.claims import values

CONFIG = """
seeds = [0, 1]
photos = {products = 5, people = 10, changes = 60, bytes = [10, 2000]}
"""


def test_everything_is_written(tmp_path):
    (tmp_path / "config.toml").write_text(CONFIG)
    main(["--config", str(tmp_path / "config.toml"), "--out", str(tmp_path / "out")])
    written = json.loads((tmp_path / "out" / "results.json").read_text())
    claims = tomllib.loads((HERE / "claims.toml").read_text())["claim"]
    assert set(written["claims"]) == {each["claim"] for each in claims}
    assert all(len(of_seeds) == 2 for of_seeds in written["claims"].values())
    assert "photos apart" in (tmp_path / "out" / "README.md").read_text()


def test_photos_that_are_sent_again_are_seen(monkeypatch):
    config = tomllib.loads(CONFIG)["photos"]
    honest = values({"photos": photos.run(config, 0, lambda _: None)})
    assert honest["select.sectionI.stays"] == 0 and honest["select.sectionI.bytes"] > 1
    # As if no point told who has wanted the product before: everybody is sent its photo again and again.
    server = "research.strategies.select.entering.EnteringServer"
    monkeypatch.setattr(f"{server}._is_said_by_points", lambda self, changes, _: changes.had & False)
    lavish = values({"photos": photos.run(config, 0, lambda _: None)})
    assert lavish["select.sectionI.stays"] > 0.5
