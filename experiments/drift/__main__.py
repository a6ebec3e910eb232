"""`python -m experiments.drift`: runs all experiments and writes their results, pictures and a page about them."""

from __future__ import annotations

from pathlib import Path

from experiments.drift import choice, mixed, plots, radii, same
from experiments.drift.outcome import warm_up
from experiments.drift.summary import page
from experiments.running import Paper

HERE = Path(__file__).parent
EXPERIMENTS = {
    "radii": radii.run,
    "same": same.run,
    "arrivals": same.run_arrivals,
    "all": mixed.run,
    "stocks": mixed.run_stocks,
    "choice": choice.run,
}
main = Paper(HERE, EXPERIMENTS, plots.draw, page, warm_up).main


if __name__ == "__main__":
    main()
