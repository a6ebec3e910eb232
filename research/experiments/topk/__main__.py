"""`python -m research.experiments.topk`: runs all experiments and writes their results, pictures and a page about them."""

from __future__ import annotations

from pathlib import Path

from research.experiments.paper import Paper
from research.experiments.topk import batch, lookups, traffic
from research.experiments.topk.claims import values
from research.experiments.topk.pages import PICTURES, page
from research.experiments.topk.several import several
from research.experiments.topk.sketch import sketch

EXPERIMENTS = {
    "calls": lookups.calls,
    "growth": lookups.growth,
    "redundancy": traffic.redundancy,
    "traffic": traffic.traffic,
    "batch": batch.run,
    "spread": lookups.spread,
    "steps": traffic.steps,
    "stocks": traffic.stocks,
    "sketch": sketch,
    "several": several,
}
HERE = Path(__file__).parent
main = Paper(HERE, EXPERIMENTS, PICTURES, page, values).main


if __name__ == "__main__":
    main()
