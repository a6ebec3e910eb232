"""`tidings demo`: a market, a hundred thousand subscriptions and Spark, to look at; three customers say what it is for."""

from __future__ import annotations

import time
from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from rich.console import RenderableType

    from tidings.spark.demo import BatchView

_TOLD_MAX = 3
"""Last notifications of each customer that are shown."""
_WIDTH = 118
"""Of a picture; and so wide must a screen be to have the figures beside the customers."""


def add_to(app: typer.Typer) -> None:
    app.command()(demo)


def demo(
    seconds: float | None = typer.Option(
        None, min=0, help="Stop so long after the first notification (default: never)."
    ),
    subscriptions: int = typer.Option(100_000, min=1, help="How many subscriptions to make."),
    rate: int = typer.Option(2_000, min=1, help="Changes per second of the market feed."),
    seed: int = typer.Option(0, help="Seed of the market."),
    master: str = typer.Option("local[*]", help="Spark master."),
    picture: Path | None = typer.Option(None, help="Write the last screen to this file, as SVG."),
) -> None:
    """Watch it live: a generated market feed, local Spark, 100k subscriptions, and what three of them are told, and why.

    Runs until stopped with Ctrl-C, or for --seconds N.
    """
    from tidings.pipeline.warm import STEPS
    from tidings.signals import Stop
    from tidings.terminal import compile_kernels, console, say

    screen = console()
    view = DemoScreen(subscriptions)
    with Stop(code=0):
        say("loading")
        compile_kernels(STEPS, say)
        from tidings.spark.demo import run_demo

        try:
            if screen.is_terminal:
                from rich.live import Live

                with Live(get_renderable=lambda: view.render(screen.width), console=screen, refresh_per_second=4):
                    run_demo(subscriptions, rate, seconds, seed, master, view.step, view.take)
            else:
                typer.echo(view.introduction())
                run_demo(subscriptions, rate, seconds, seed, master, say, lambda batch: typer.echo(view.take(batch)))
        finally:
            if picture is not None:
                _write_picture(view, picture)
            screen.print(f"{view.notifications:,} notifications", highlight=False)


class DemoScreen:
    """Who asked for what, what they are told and why, and the rates beside it."""

    def __init__(self, subscriptions: int) -> None:
        from tidings.workloads.market.customers import CUSTOMERS

        self._subscriptions = subscriptions
        self._step = "starting"
        self._started = time.monotonic()
        self._last: BatchView | None = None
        self._customers = CUSTOMERS
        self._told: dict[str, deque[str]] = {customer.name: deque(maxlen=_TOLD_MAX) for customer in CUSTOMERS}
        self._counts = dict.fromkeys(self._told, 0)
        self._totals = {"changes": 0, "notifications": 0}
        self._rates = dict.fromkeys(self._totals, 0.0)

    @property
    def notifications(self) -> int:
        return self._totals["notifications"]

    def step(self, text: str) -> None:
        self._step = text

    def introduction(self) -> str:
        """Who the customers are, as plain text."""
        lines = [f"{self._subscriptions:,} subscriptions to one market. Three of them:"]
        lines += [f"{each.name} wants {each.wish}\n    {each.sql}" for each in self._customers]
        return "\n".join(lines)

    def take(self, view: BatchView) -> str:
        """Takes in a micro-batch; gives it as plain text, with what customers were told."""
        self._step = "running; Ctrl-C stops"
        for name, count in (("changes", view.changes), ("notifications", view.notifications)):
            self._totals[name] += count
            rate = count / max(view.seconds, 1e-9)
            # The first micro-batch holds the snapshots and the start of Spark: no rate to show.
            is_first = self._last is None or self._last.batch == 0
            self._rates[name] = rate if is_first else self._rates[name] / 2 + rate / 2
        self._last = view
        shown: list[str] = []
        for name, told in self._told.items():
            words = [text for who, text in view.told if who == name]
            self._counts[name] += len(words)
            # Rows that come and go say more than those that stay.
            chosen = sorted(range(len(words)), key=lambda at: ("within" in words[at] or "still" in words[at], -at))
            latest = [words[at] for at in sorted(chosen[:_TOLD_MAX])]
            told.extend(latest)
            shown += [f"  {name}: {text}" for text in latest]
        head = f"batch {view.batch}: {view.changes:,} changes, {view.notifications:,} notifications"
        return "\n".join([f"{head}; {view.seconds:.2f} s, {view.lag_seconds:.1f} s behind the market", *shown])

    def render(self, width: int) -> RenderableType:
        from rich.console import Group
        from rich.table import Table
        from rich.text import Text

        title = Text.assemble(
            ("tidings demo  ", "bold"), f"{self._subscriptions:,} subscriptions to one market  ", (self._step, "dim")
        )
        if self._last is None:
            return Group(title, Text(f"{time.monotonic() - self._started:.0f} s", style="dim"))
        customers = Group(*(part for name in self._told for part in self._customer(name)))
        if width < _WIDTH:
            return Group(title, self._figures(), customers)
        beside = Table.grid(padding=(0, 3), expand=True)
        beside.add_column(ratio=1)
        beside.add_column()
        beside.add_row(customers, self._figures())
        return Group(title, Text(), beside)

    def _customer(self, name: str) -> list[RenderableType]:
        from rich.text import Text

        customer = next(each for each in self._customers if each.name == name)
        lines: list[RenderableType] = [
            Text.assemble((f"{name} ", "bold yellow"), f"wants {customer.wish}"),
            Text(f"  {customer.sql}", style="cyan"),
            Text(f"  notified {self._counts[name]:,} times; the last:", style="dim"),
        ]
        lines += [Text(f"  {text}", style="green") for text in self._told[name]]
        return [*lines, Text()]

    def _figures(self) -> RenderableType:
        from rich.table import Table

        assert self._last is not None
        table = Table(show_edge=False, pad_edge=False)
        for name in ("", "per second", "total"):
            table.add_column(name, justify="right" if name else "left")
        for name, total in self._totals.items():
            table.add_row(name, f"{self._rates[name]:,.0f}", f"{total:,}")
        table.add_row("behind the market", f"{self._last.lag_seconds:.1f} s", "")
        return table


def _write_picture(view: DemoScreen, path: Path) -> None:
    import io

    from rich.console import Console

    recorded = Console(record=True, width=_WIDTH, file=io.StringIO(), force_terminal=True)
    recorded.print(view.render(_WIDTH))
    recorded.save_svg(str(path), title="tidings demo", unique_id="demo")
