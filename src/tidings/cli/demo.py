"""`tidings demo`: a market, a hundred thousand subscriptions and Spark, to look at."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tidings.spark.demo import BatchView


def add_to(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    seconds: float | None = typer.Option(
        None, min=0, help="Stop so long after the first notification (default: never)."
    ),
    subscriptions: int = typer.Option(100_000, min=1, help="How many subscriptions to make."),
    rate: int = typer.Option(5_000, min=1, help="Changes per second of the market feed."),
    seed: int = typer.Option(0, help="Seed of the market."),
    master: str = typer.Option("local[*]", help="Spark master."),
) -> None:
    """Watch the flow live: a generated market feed, local Spark, and the notifications of 100k subscriptions.

    Runs until stopped with Ctrl-C, or for --seconds N.
    """
    from tidings.pipeline.warm import STEPS
    from tidings.spark.demo import run_demo
    from tidings.terminal import compile_kernels, console

    compile_kernels(STEPS)
    screen = console()
    view = _Screen(subscriptions)
    if screen.is_terminal:
        from rich.live import Live

        with Live(get_renderable=view.render, console=screen, refresh_per_second=4):
            told = run_demo(subscriptions, rate, seconds, seed, master, view.step, view.take)
    else:
        told = run_demo(subscriptions, rate, seconds, seed, master, typer.echo, lambda b: typer.echo(view.take(b)))
    screen.print(f"{told:,} notifications", highlight=False)


class _Screen:
    """The demo's figures: rates over the last micro-batches, totals, and a few notifications."""

    def __init__(self, subscriptions: int) -> None:
        self._subscriptions = subscriptions
        self._step = "starting"
        self._started = time.monotonic()
        self._last: BatchView | None = None
        self._totals: dict[str, int] = {}
        self._rates: dict[str, float] = {}

    def step(self, text: str) -> None:
        self._step = text

    def take(self, view: BatchView) -> str:
        """Takes in a micro-batch; gives it as plain text, with samples."""
        self._step = "running; Ctrl-C stops"
        counts = {name: _total(view.metrics.get(name, 0)) for name in ("changes", *_PER_FAMILY)}
        for name, count in counts.items():
            self._totals[name] = self._totals.get(name, 0) + count
            rate = count / max(view.seconds, 1e-9)
            # The first micro-batch holds the snapshots and the start of Spark: no rate to show.
            self._rates[name] = (
                rate if self._last is None or self._last.batch == 0 else self._rates[name] / 2 + rate / 2
            )
        if view.samples or self._last is None:
            self._last = view
        figures = ", ".join(f"{counts[name]:,} {_LABELS[name]}" for name in counts)
        head = f"batch {view.batch}: {figures}; {view.seconds:.2f} s, lag {view.lag_seconds:.1f} s"
        return "\n".join([head, *(f"  {_shorten(sample, 160)}" for sample in view.samples[:3])])

    def render(self) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        title = Text.assemble(
            ("tidings demo  ", "bold"), f"{self._subscriptions:,} subscriptions  ", (self._step, "dim")
        )
        if self._last is None:
            return Group(title, Text(f"{time.monotonic() - self._started:.0f} s", style="dim"))
        table = Table(show_edge=False, pad_edge=False)
        for name in ("", "per second", "total"):
            table.add_column(name, justify="right" if name else "left")
        for name, label in _LABELS.items():
            table.add_row(label, f"{self._rates.get(name, 0):,.0f}", f"{self._totals.get(name, 0):,}")
        facts = f"micro-batch {self._last.batch}: {self._last.seconds:.2f} s, lag {self._last.lag_seconds:.1f} s"
        samples = [Text(sample, style="cyan", no_wrap=True, overflow="ellipsis") for sample in self._last.samples[:6]]
        return Group(title, table, Text(facts, style="dim"), *samples)


_PER_FAMILY = ("messages", "deliveries", "notifications")
_LABELS = {name: name for name in ("changes", *_PER_FAMILY)}


def _total(value: Any) -> int:
    return sum(value.values()) if isinstance(value, dict) else int(value)


def _shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 2] + ".."
