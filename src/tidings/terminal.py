"""What a person at a terminal sees of long work: progress on stderr, nothing when piped."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
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
    """Compiles the kernels of the message strategies if this machine has not done so yet."""

    def ask_and_warm() -> None:
        from tidings.kernels import warm

        if not warm.is_compiled():
            with console().status(_COMPILING):
                warm.warm()

    _once("messages", ask_and_warm)


def warm_replicas(warm: Callable[[], None]) -> None:
    """Compiles the kernels of replicas, by `warm`, if this machine has not done so yet."""

    def say_and_warm() -> None:
        with console().status(_COMPILING):
            warm()

    _once("replicas", say_and_warm)


def announce_first_use() -> None:
    """Says that work is about to compile kernels as it needs them, where that has not been done yet."""
    if sys.stderr.isatty() and not _is_noted("replicas"):
        console().print(_COMPILING)


_COMPILING = "compiling kernels (first run only) .."


def _once(what: str, work: Callable[[], None]) -> None:
    """Does some compiling that need not be done again while sources and machine are the same.

    To ask all kernels is to import them all, many times what a small run needs. So what was done is noted beside what numba
    keeps of them.
    """
    if _is_noted(what):
        return
    work()
    with suppress(OSError):
        _note(what).write_text(_state())


def _is_noted(what: str) -> bool:
    with suppress(OSError):
        return _note(what).read_text() == _state()
    return False


def _note(what: str) -> Path:
    from tidings.kernels.rows.read import mix  # one that every run needs

    return Path(mix.stats.cache_path) / f"tidings-compiled-{what}"


def _state() -> str:
    """What compiled kernels depend on: their sources, Python, numba and the processor."""
    import numba
    from llvmlite.binding import get_host_cpu_name

    package = Path(__file__).parent
    sources = [(path.relative_to(package), path.stat()) for path in sorted(package.glob("**/kernels/**/*.py"))]
    lines = [f"{path} {stat.st_mtime_ns} {stat.st_size}" for path, stat in sources]
    return "\n".join([f"{sys.implementation.cache_tag} {numba.__version__} {get_host_cpu_name()}", *lines])
