"""Hypothesis profiles: no deadlines on busy machines; the same examples every time where CI asks for it."""

import os

import pytest
from hypothesis import HealthCheck, settings

settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", parent=settings.get_profile("default"), derandomize=True, print_blob=True)
settings.load_profile("ci" if os.environ.get("CI") else "default")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Files that start Spark first: they take longest, and two processes share the files (see `make test`)."""
    items.sort(key=lambda item: item.get_closest_marker("spark") is None)
