"""`python -m research.experiments.join`: runs all experiments and writes their results, pictures and a page about them."""

from __future__ import annotations

from pathlib import Path

from research.experiments.join import multi
from research.experiments.join.binary import warm_up
from research.experiments.join.claims import values
from research.experiments.join.columns import run_columns
from research.experiments.join.pages import PICTURES, page
from research.experiments.join.sweeps import SWEEPS
from research.experiments.paper import Paper

EXPERIMENTS = SWEEPS | {"general": multi.run_general, "star": multi.run_star, "columns": run_columns}
HERE = Path(__file__).parent
main = Paper(HERE, EXPERIMENTS, PICTURES, page, values, warm_up).main


if __name__ == "__main__":
    main()
