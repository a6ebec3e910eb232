"""`python -m experiments.join`: runs all experiments and writes their results, pictures and a page about them."""

from __future__ import annotations

import argparse
import json
import sys
import time
import tomllib
from pathlib import Path
from typing import Any

from experiments.join import multi, plots, sweeps
from experiments.join.binary import warm_up
from experiments.join.outcome import Rows
from experiments.join.summary import page
from tidings.bench.stamp import load_average, stamp

HERE = Path(__file__).parent
EXPERIMENTS = {
    "growth": sweeps.run_growth,
    "database": sweeps.run_database,
    "output": sweeps.run_output,
    "stocks": sweeps.run_stocks,
    "payload": sweeps.run_payload,
    "overlap": sweeps.run_overlap,
    "general": multi.run_general,
    "star": multi.run_star,
}


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(prog="python -m experiments.join", description=__doc__)
    parser.add_argument("--config", type=Path, default=HERE / "config.toml", help="what to run")
    parser.add_argument("--out", type=Path, default=HERE / "results", help="folder for results and pictures")
    parser.add_argument("names", nargs="*", help=f"which of {', '.join(EXPERIMENTS)} (default: all in the config)")
    given = parser.parse_args(arguments)
    unknown = set(given.names) - set(EXPERIMENTS)
    if unknown:
        parser.error(f"unknown experiments {', '.join(sorted(unknown))}; there are: {', '.join(EXPERIMENTS)}")
    config = tomllib.loads(given.config.read_text(encoding="utf-8"))
    run(config, given.names or [name for name in EXPERIMENTS if name in config], given.out)


def run(config: dict[str, Any], names: list[str], out: Path) -> None:
    started = time.monotonic()
    stamped = stamp(config["seed"])
    _say("warming up")
    warm_up()
    results: dict[str, Rows] = {}
    seconds: dict[str, float] = {}
    for name in names:
        begun = time.monotonic()
        results[name] = EXPERIMENTS[name](config[name], config["seed"], lambda text, name=name: _say(f"{name}: {text}"))  # type: ignore[misc]
        seconds[name] = time.monotonic() - begun
    stamped |= {"load_average_end": load_average(), "seconds": time.monotonic() - started, "seconds_each": seconds}
    published = tomllib.loads((HERE / "published.toml").read_text(encoding="utf-8"))
    out.mkdir(parents=True, exist_ok=True)
    everything = {"stamp": stamped, "config": config, "published": published, "measured": results}
    (out / "results.json").write_text(json.dumps(everything, indent=1) + "\n", encoding="utf-8")
    pictures = plots.draw(results, out)
    (out / "README.md").write_text(page(results, published, stamped, pictures), encoding="utf-8")


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
