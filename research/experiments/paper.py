"""Runs the experiments of one paper over several seeds: results as JSON, pictures, and a page of tables.

Rows, pictures and tables are those of the first seed. Of every seed the numbers are kept that the claims of the paper
are judged by (`research/evidence.py`).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tidings.bench.stamp import load_average, stamp

if TYPE_CHECKING:
    from research.experiments.plots import Picture


Say = Callable[[str], None]
Config = dict[str, Any]
"""A table of `config.toml` or of `published.toml`."""
Rows = list[dict[str, Any]]
"""Results of an experiment: a row for every point of its curves."""
Results = dict[str, Rows]
"""Results by experiment."""
Run = Callable[[Config, int, Say], Rows]
"""(configuration of the experiment, seed, what to tell the user by)"""
Values = dict[str, float | None]
"""A number per claim; None where a run cannot tell."""


@dataclass(frozen=True)
class Paper:
    """What the folder of a paper's experiments brings."""

    folder: Path
    experiments: Mapping[str, Run]
    pictures: Mapping[str, Picture]
    page: Callable[[Results, Config, Config, list[str]], str]
    """(results, published numbers, stamp, names of pictures) -> the page about them"""
    values: Callable[[Results], Values]
    """The number of each claim, from the results of one seed."""
    warm_up: Callable[[], object] | None = None

    def main(self, arguments: list[str] | None = None) -> None:
        name = f"python -m research.experiments.{self.folder.name}"
        text = f"`{name}`: runs all experiments and writes their results, pictures and a page about them."
        parser = argparse.ArgumentParser(prog=name, description=text)
        parser.add_argument("--config", type=Path, default=self.folder / "config.toml", help="what to run")
        parser.add_argument("--out", type=Path, default=self.folder / "results", help="folder for results and pictures")
        known = ", ".join(self.experiments)
        parser.add_argument("names", nargs="*", help=f"which of {known}; others stay as they are (default: all)")
        parser.add_argument("--seeds", type=_seeds, help="such as 0:5 (default: those of the config)")
        given = parser.parse_args(arguments)
        unknown = set(given.names) - set(self.experiments)
        if unknown:
            parser.error(f"unknown experiments {', '.join(sorted(unknown))}; there are: {known}")
        config = tomllib.loads(given.config.read_text(encoding="utf-8"))
        config["seeds"] = given.seeds or config["seeds"]
        self._run(config, given.names or [name for name in self.experiments if name in config], given.out)

    def _run(self, config: dict[str, Any], names: list[str], out: Path) -> None:
        started = time.monotonic()
        stamped = stamp(config["seeds"][0])
        if self.warm_up is not None:
            _say("warming up")
            self.warm_up()
        seconds = dict.fromkeys(names, 0.0)
        by_seed = [self._one(config, names, seed, seconds) for seed in config["seeds"]]
        results = by_seed[0]
        stamped |= {"load_average_end": load_average(), "seconds": time.monotonic() - started, "seconds_each": seconds}
        file = self.folder / "published.toml"
        published = tomllib.loads(file.read_text(encoding="utf-8")) if file.exists() else {}
        out.mkdir(parents=True, exist_ok=True)
        found = [self.values(of_seed) for of_seed in by_seed]
        claims = {claim: [values[claim] for values in found] for claim in found[0]}
        file = out / "results.json"
        before = (
            json.loads(file.read_text(encoding="utf-8")) if file.exists() and len(names) < len(self.experiments) else {}
        )
        told = {claim: values for claim, values in claims.items() if values.count(None) < len(values)}
        claims, results = claims | before.get("claims", {}) | told, before.get("measured", {}) | results
        everything = {"stamp": stamped, "config": config, "claims": claims, "measured": results}
        file.write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
        from research.experiments.plots import draw

        pictures = draw(self.pictures, results, out)
        (out / "README.md").write_text(self.page(results, published, stamped, pictures), encoding="utf-8")

    def _one(self, config: dict[str, Any], names: list[str], seed: int, seconds: dict[str, float]) -> Results:
        """The results of one seed; adds what each experiment took to `seconds`."""
        results: Results = {}
        for name in names:
            begun = time.monotonic()
            say = lambda text, name=name: _say(f"seed {seed}, {name}: {text}")  # noqa: E731
            results[name] = self.experiments[name](config[name], seed, say)
            seconds[name] += time.monotonic() - begun
        return results


def _seeds(text: str) -> list[int]:
    first, last = map(int, text.split(":"))
    return list(range(first, last))


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
