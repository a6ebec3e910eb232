"""`python -m research.experiments.relay`: runs all experiments and writes their results, pictures and a page about them."""

from __future__ import annotations

from pathlib import Path

from research.experiments.paper import Paper
from research.experiments.relay import partial, plans, sets, wan, weights
from research.experiments.relay.claims import values
from research.experiments.relay.pages import PICTURES, page

EXPERIMENTS = {
    "sets": sets.run,
    "plans": plans.use,
    "latency": plans.latency,
    "levels": plans.levels,
    "weights": weights.run,
    "partial": partial.run,
    "wan": wan.run,
}
HERE = Path(__file__).parent
main = Paper(HERE, EXPERIMENTS, PICTURES, page, values, plans.warm_up).main


if __name__ == "__main__":
    main()
