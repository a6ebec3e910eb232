"""`tidings bench`: measurements of this machine, ours and our peers' on the same data in the same run.

`python -m research bench` uses its parts.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Annotated

import typer

from tidings.bench import BENCHES, Entry, Live, Options, Serve, find
from tidings.cli.listing import show_list


def add_to(app: typer.Typer) -> None:
    app.command(epilog="Benches: " + "; ".join(f"{name} ({e.description})" for name, e in BENCHES.items()))(bench)


def bench(
    name: Annotated[str, typer.Argument(help="Which bench; `list` shows them.")],
    sizes: Annotated[
        str, typer.Option(help="Numbers of subscriptions, such as 10000,100000 (default: as the bench has them).")
    ] = "",
    changes: Annotated[int, typer.Option(min=20_000, help="Changes per size, in batches of 10,000.")] = 100_000,
    cases: Annotated[str, typer.Option(help="mix: what to measure, such as market,auctions (default: all).")] = "",
    batches: Annotated[
        str, typer.Option(help="mix: changes per batch, such as 1,100 (default: as the bench has them).")
    ] = "",
    engines: Annotated[str, typer.Option(help="Engines to measure, such as inline,spark (default: all).")] = "",
    peers: Annotated[bool, typer.Option(help="Measure the obvious alternatives too.")] = True,
    json: Annotated[Path | None, typer.Option(help="Write all figures, with commit and machine, as JSON.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same data.")] = 0,
    source: Annotated[str, typer.Option(help="live: where changes come from.")] = "postgres",
    rate: Annotated[
        int, typer.Option(min=0, help="live, soak, serve: changes a second (0: 2,000, with serve 1,000).")
    ] = 0,
    seconds: Annotated[int, typer.Option(min=1, help="live, soak, serve: how long changes are written at least.")] = 60,
    subscriptions: Annotated[
        int, typer.Option(min=0, help="live, soak, serve: the same as --sizes with one number.")
    ] = 0,
    clients: Annotated[int, typer.Option(min=1, help="serve: clients, each following a subscription.")] = Serve.clients,
    transport: Annotated[str, typer.Option(help="serve: sse, websocket or both.")] = Serve.transport,
    kills: Annotated[int, typer.Option(min=0, help="live: how often the job is killed meanwhile.")] = 5,
    statements: Annotated[int, typer.Option(min=1, help="live: changes of a transaction, at most.")] = 10,
) -> None:
    """Measure how fast changes become notifications, how that grows with subscriptions, and what others do.

    Benches of single families are in the clone: python -m research bench list

    Example: tidings bench mix --sizes 10000,1000000 --json mix.json

    One case alone: tidings bench mix --cases market --sizes 10000 --batches 1,100 --engines inline --no-peers
    """
    from tidings.model.errors import UsageError

    if name == "list":
        show_list({known: entry.description for known, entry in BENCHES.items()})
        return
    entry = find(name)
    if (cases or batches) and not entry.has_cases:
        raise UsageError(f"--cases and --batches are not for the bench {name!r}")
    live = Live(source, rate or Live.rate, seconds, kills, statements)
    if not entry.is_live and replace(live, rate=Live.rate, seconds=Live.seconds) != Live():
        raise UsageError(f"--source, --kills and --statements are not for the bench {name!r}")
    if not (entry.is_live or entry.is_serve) and (rate, seconds) != (0, Live.seconds):
        raise UsageError(f"--rate and --seconds are not for the bench {name!r}")
    serve = Serve(clients, rate or Serve.rate, seconds, transport)
    if not entry.is_serve and (clients, transport) != (Serve.clients, Serve.transport):
        raise UsageError(f"--clients and --transport are not for the bench {name!r}")
    options = Options(
        sizes_of(sizes or str(subscriptions)) if sizes or subscriptions else entry.sizes,
        changes,
        names_of(engines),
        peers,
        seed,
        names_of(cases),
        sizes_of(batches, "--batches", "changes per batch") if batches else (),
        live,
        serve,
    )
    measure(entry, options, json)


def measure(entry: Entry, options: Options, json: Path | None) -> None:
    """Runs a bench and writes its report. Exit code 1 if it has found something wrong."""
    from tidings.files import write_json
    from tidings.terminal import console

    screen = console()
    report = entry.load()(options, lambda text: screen.print(text, soft_wrap=True, highlight=False))
    report.write(sys.stdout)
    if json is not None:
        write_json(json, report.as_json())
    if report.is_wrong:
        raise typer.Exit(1)


def names_of(text: str) -> tuple[str, ...]:
    """The names in an option, such as `market,auctions`."""
    return tuple(filter(None, text.split(",")))


def sizes_of(text: str, option: str = "--sizes", meaning: str = "numbers of subscriptions") -> tuple[int, ...]:
    """The numbers in an option, such as `1,100`, ascending."""
    from tidings.model.errors import UsageError

    try:
        sizes = tuple(int(part.replace("_", "")) for part in text.split(","))
    except ValueError:
        sizes = ()
    if not sizes or min(sizes) < 1:
        raise UsageError(f"{option} takes {meaning} separated by commas, not {text!r}")
    return tuple(sorted(set(sizes)))
