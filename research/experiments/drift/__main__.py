"""`python -m research.experiments.drift`: runs all experiments and writes their results, pictures and a page about them."""

from __future__ import annotations

from pathlib import Path

from research.experiments.drift import choice, relative
from research.experiments.drift.cases import arrivals, by_size
from research.experiments.drift.claims import values
from research.experiments.drift.pages import PICTURES, page
from research.experiments.drift.server_time import OF_CASE
from research.experiments.paper import Paper

EXPERIMENTS = {
    "radii": by_size("radii"),
    "same": by_size("same"),
    "arrivals": arrivals,
    "all": by_size("all"),
    "stocks": by_size("stocks"),
    "choice": choice.run,
    "unique": choice.unique,
    "relative": relative.run,
}


def warm_up() -> None:
    """Lets kernels be compiled before any time is taken."""
    for name in OF_CASE:
        by_size(name)({"sizes": [300], "events": 200, "timed_after": 100, "timed_events": 100}, 0, lambda _: None)


main = Paper(Path(__file__).parent, EXPERIMENTS, PICTURES, page, values, warm_up).main


if __name__ == "__main__":
    main()
