"""What `list` shows of the names that a command takes."""

from __future__ import annotations

from collections.abc import Mapping

import typer


def show_list(descriptions: Mapping[str, str]) -> None:
    """A line for each name."""
    width = max(len(name) for name in descriptions)
    for name, description in descriptions.items():
        typer.echo(f"{name.ljust(width)}  {description}")
