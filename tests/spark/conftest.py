"""Fixtures of the tests that need a PostgreSQL server."""

from postgres_server import database, server  # noqa: F401
