"""The strategies of `research` are there for its tests, and for no others that run in the same process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from research import strategies


@pytest.fixture(scope="module", autouse=True)
def research_strategies() -> Iterator[None]:
    strategies.register()
    yield
    strategies.unregister()
