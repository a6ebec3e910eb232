"""What a person at a terminal sees of long work: progress on stderr, nothing when piped."""

from __future__ import annotations

import datetime as dt
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from contextlib import contextmanager, suppress
from multiprocessing import active_children, get_context
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from tidings.signals import shielding

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


def say(text: str) -> None:
    """A line of a log on stderr, with the time."""
    sys.stderr.write(f"{dt.datetime.now():%H:%M:%S} {text}\n")


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


def announce_compiling() -> None:
    """From now on a person at the terminal is told when a kernel is compiled, which happens the first time it is used."""
    if not sys.stderr.isatty():
        return
    from tidings.kernels import jit

    screen = console()

    def announce(name: str) -> None:
        screen.print(f"compiling {name} (first use only)", style="dim", highlight=False)

    jit.announce = announce


def compile_kernels(steps: Sequence[Callable[[], None]], on_step: Callable[[str], object] | None = None) -> None:
    """Compiles all kernels that some pieces of work use, on all cores, unless that was done before.

    Without asking the kernels: that would import them all, many times what a small run needs. So what was done is noted
    beside what is kept of them. on_step: called if there is something to do, with words that say so.
    """
    with suppress(OSError):
        if _note(steps).read_text() == _state():
            return
    if on_step is not None:
        on_step("compiling kernels (first run only: a minute or more)")
    # A process of its own for each: what is compiled in this one would be copied to all.
    with progress() as display, ProcessPoolExecutor(mp_context=get_context("spawn")) as pool:
        task = display.add_task("compiling kernels (first run only)", total=len(steps))
        try:
            with shielding():
                running = [pool.submit(step) for step in steps]
            for done in as_completed(running):
                done.result()
                display.update(task, advance=1)
        except KeyboardInterrupt:
            for child in active_children():
                child.kill()
            raise
    with suppress(OSError):
        _note(steps).write_text(_state())


def _note(steps: Sequence[Callable[[], None]]) -> Path:
    from tidings.kernels.rows.read import mix  # one that every run needs

    return Path(mix.stats.cache_path) / f"tidings-{steps[0].__name__}"


def _state() -> str:
    """What compiled kernels depend on: their sources, Python, numba and the processor."""
    import numba
    from llvmlite.binding import get_host_cpu_name

    package = Path(__file__).parent
    sources = [(path.relative_to(package), path.stat()) for path in sorted(package.glob("**/kernels/**/*.py"))]
    lines = [f"{path} {stat.st_mtime_ns} {stat.st_size}" for path, stat in sources]
    return "\n".join([f"{sys.implementation.cache_tag} {numba.__version__} {get_host_cpu_name()}", *lines])
