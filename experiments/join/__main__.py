"""`python -m experiments.join`: runs all experiments and writes their results, pictures and a page about them."""

from __future__ import annotations

from pathlib import Path

from experiments.join import multi, plots, sweeps
from experiments.join.binary import warm_up
from experiments.join.summary import page
from experiments.running import Paper

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
main = Paper(HERE, EXPERIMENTS, plots.draw, page, warm_up).main


if __name__ == "__main__":
    main()
