"""`python -m research.experiments.drift`: runs all experiments and writes their results, pictures and a page about them."""

from __future__ import annotations

from pathlib import Path

from research.experiments.drift import choice
from research.experiments.drift.cases import arrivals, by_size
from research.experiments.drift.outcome import warm_up
from research.experiments.drift.pages import PICTURES, page
from research.experiments.paper import Paper

EXPERIMENTS = {
    "radii": by_size("radii"),
    "same": by_size("same"),
    "arrivals": arrivals,
    "all": by_size("all"),
    "stocks": by_size("stocks"),
    "choice": choice.run,
}
main = Paper(Path(__file__).parent, EXPERIMENTS, PICTURES, page, warm_up).main


if __name__ == "__main__":
    main()
