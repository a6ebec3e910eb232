"""What a person at a terminal sees of long work: progress on stderr, nothing when piped."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress


def console() -> Console:
    """The console for everything that is not data."""
    from rich.console import Console

    return Console(stderr=True)


@contextmanager
def progress() -> Iterator[Progress]:
    """A progress display on stderr, silent unless stderr is a terminal."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    screen = console()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=screen, disable=not screen.is_terminal, transient=True) as display:
        yield display


def warm_kernels() -> None:
    """Compiles the kernels if this machine has not done so yet, saying why that takes a while."""
    from tidings.kernels import warm

    if not warm.is_compiled():
        with console().status("compiling kernels (first run only) .."):
            warm.warm()
