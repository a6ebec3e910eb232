"""`python -m research.experiments.offers`: runs all experiments and writes their results, pictures and a page about them."""

from __future__ import annotations

from pathlib import Path

from research.experiments.offers import breakdown, language, memory, penalty, sweeps
from research.experiments.offers.claims import values
from research.experiments.offers.pages import PICTURES, page
from research.experiments.paper import Paper

EXPERIMENTS = {
    "breakdown": breakdown.run,
    "subscriptions": sweeps.by_subscriptions,
    "batches": sweeps.by_batch,
    "language": language.run,
    "memory": memory.run,
    "penalty": penalty.run,
}
HERE = Path(__file__).parent
main = Paper(HERE, EXPERIMENTS, PICTURES, page, values, sweeps.warm_up).main


if __name__ == "__main__":
    main()
