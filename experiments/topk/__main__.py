"""`python -m experiments.topk`: runs all experiments and writes their results, pictures and a page about them."""

from __future__ import annotations

from pathlib import Path

from experiments.running import Paper
from experiments.topk import batch, calls, plots, redundancy, spread, stocks, traffic
from experiments.topk.summary import page

HERE = Path(__file__).parent
EXPERIMENTS = {
    "calls": calls.run,
    "growth": calls.run_growth,
    "redundancy": redundancy.run,
    "traffic": traffic.run,
    "batch": batch.run,
    "spread": spread.run,
    "steps": spread.run_steps,
    "stocks": stocks.run,
}
main = Paper(HERE, EXPERIMENTS, plots.draw, page).main


if __name__ == "__main__":
    main()
