"""`python -m research.experiments.network`: runs all experiments and writes their results, pictures and a page about them."""

from __future__ import annotations

from pathlib import Path

from research.experiments.network.caching import latency, repository
from research.experiments.network.claims import values
from research.experiments.network.joins import JOINS
from research.experiments.network.notifications import NOTIFICATIONS
from research.experiments.network.pages import PICTURES, page
from research.experiments.network.rankings import ranking_stocks, rankings
from research.experiments.paper import Paper

EXPERIMENTS = (
    JOINS
    | {"repository": repository, "latency": latency}
    | NOTIFICATIONS
    | {"rankings": rankings, "ranking_stocks": ranking_stocks}
)
main = Paper(Path(__file__).parent, EXPERIMENTS, PICTURES, page, values).main


if __name__ == "__main__":
    main()
