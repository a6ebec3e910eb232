"""`python -m research.experiments.select`: runs the experiment and writes its results and a page about them."""

from __future__ import annotations

from pathlib import Path

from research.experiments.paper import Paper
from research.experiments.select import photos
from research.experiments.select.claims import values
from research.experiments.select.pages import page

EXPERIMENTS = {"photos": photos.run}
HERE = Path(__file__).parent
main = Paper(HERE, EXPERIMENTS, {}, page, values).main


if __name__ == "__main__":
    main()
