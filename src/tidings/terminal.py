"""What a person at a terminal sees of long work: progress on stderr, nothing when piped."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from rich.console import Console


class Display(Protocol):
    """What long work tells of its progress; rich's Progress is one."""

    def add_task(self, description: str, *, total: float | None) -> Any:
        """Starts a bar, whose length may be unknown; gives what `update` knows it by."""
        ...

    def update(self, task_id: Any, *, completed: float | None = None, advance: float | None = None) -> None: ...


class _NoDisplay:
    def add_task(self, description: str, *, total: float | None) -> None:
        pass

    def update(self, task_id: None, *, completed: float | None = None, advance: float | None = None) -> None:
        pass


def console() -> Console:
    """The console for everything that is not data."""
    from rich.console import Console

    return Console(stderr=True)


@contextmanager
def progress() -> Iterator[Display]:
    """A progress display on stderr, silent unless stderr is a terminal."""
    if not sys.stderr.isatty():  # asked here rather than of rich, which takes long to import
        yield _NoDisplay()
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console(), transient=True) as display:
        yield display


def warm_kernels() -> None:
    """Compiles the kernels if this machine has not done so yet, saying why that takes a while.

    To ask all kernels is to import them all, many times what a small run needs. So the answer is noted beside what numba
    keeps of them, and holds while sources and machine are the same.
    """
    note, state = _note(), _state()
    with suppress(OSError):
        if note.read_text() == state:
            return
    from tidings.kernels import warm

    if not warm.is_compiled():
        with console().status("compiling kernels (first run only) .."):
            warm.warm()
    with suppress(OSError):
        note.write_text(state)


def _note() -> Path:
    from tidings.kernels.forest_any import any_inside  # one that every run needs

    return Path(any_inside.stats.cache_path) / "tidings-kernels-compiled"


def _state() -> str:
    """What compiled kernels depend on: their sources, Python, numba and the processor."""
    import numba
    from llvmlite.binding import get_host_cpu_name

    package = Path(__file__).parent
    sources = [(path.relative_to(package), path.stat()) for path in sorted(package.glob("**/kernels/**/*.py"))]
    lines = [f"{path} {stat.st_mtime_ns} {stat.st_size}" for path, stat in sources]
    return "\n".join([f"{sys.implementation.cache_tag} {numba.__version__} {get_host_cpu_name()}", *lines])
