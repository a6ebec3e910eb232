"""`python -m research`: benches of single families, workloads of published work, and `replay` by every strategy."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from research import bench as benches
from research import strategies, workloads
from research.bench import BENCHES, FamilyOptions
from research.workloads import WORKLOADS
from tidings.cli import replay
from tidings.cli.bench import measure, names_of, sizes_of
from tidings.cli.listing import show_list
from tidings.cli.main import run_app
from tidings.cli.workload import write_outputs
from tidings.model.errors import UsageError

app = typer.Typer(
    name="python -m research",
    help="Measurements of single families, and the data of published work.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.command(epilog="Benches: " + "; ".join(f"{name} ({e.description})" for name, e in BENCHES.items()))
def bench(
    name: Annotated[str, typer.Argument(help="Which bench; `list` shows them.")],
    sizes: Annotated[
        str, typer.Option(help="Numbers of subscriptions, such as 10000,100000 (default: as the bench has them).")
    ] = "",
    changes: Annotated[int, typer.Option(min=20_000, help="Changes per size, in batches of 10,000.")] = 100_000,
    cases: Annotated[str, typer.Option(help="offers, mix: what to measure, such as geometric (default: all).")] = "",
    batches: Annotated[
        str, typer.Option(help="offers, mix: changes per batch, such as 1,100 (default: several).")
    ] = "",
    engines: Annotated[str, typer.Option(help="Engines to measure, such as inline,spark (default: all).")] = "",
    peers: Annotated[bool, typer.Option(help="Measure the obvious alternatives too.")] = True,
    json: Annotated[Path | None, typer.Option(help="Write all figures, with commit and machine, as JSON.")] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same data.")] = 0,
    peer_sizes: Annotated[
        str, typer.Option(help="offers: sizes for PostgreSQL (default: where that takes less than a minute).")
    ] = "",
    agreement: Annotated[
        bool, typer.Option("--agreement", help="offers: only compare what all ways of matching find.")
    ] = False,
) -> None:
    """Measure how fast changes become messages and notifications in one family, how that grows, and what others do.

    Example: python -m research bench select --sizes 10000,1000000 --json select.json
    """
    if name == "list":
        show_list({known: entry.description for known, entry in BENCHES.items()})
        return
    entry = benches.find(name)
    if (cases or batches) and not entry.has_cases:
        raise UsageError(f"--cases and --batches are not for the bench {name!r}")
    if (peer_sizes or agreement) and not entry.agreement_sizes:
        raise UsageError(f"--peer-sizes and --agreement are not for the bench {name!r}")
    options = FamilyOptions(
        sizes_of(sizes) if sizes else entry.agreement_sizes if agreement else entry.sizes,
        changes,
        names_of(engines),
        peers,
        seed,
        names_of(cases),
        sizes_of(batches, "--batches", "changes per batch") if batches else (),
        peer_sizes=sizes_of(peer_sizes, "--peer-sizes") if peer_sizes else (),
        is_agreement=agreement,
    )
    measure(entry, options, json)


@app.command(epilog="Workloads: " + "; ".join(f"{name} ({e.description})" for name, e in WORKLOADS.items()))
def workload(
    name: Annotated[str, typer.Argument(help="Which workload; `list` shows them.")],
    out: Annotated[
        Path | None, typer.Option(help="Directory for catalog.sql, subscriptions.jsonl and changes.jsonl.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, help="The same seed gives the same files.")] = 0,
    subscriptions: Annotated[int, typer.Option(min=0, help="Subscriptions.")] = 100_000,
    changes: Annotated[int, typer.Option(min=0, help="Changes, counting the inserts that fill the tables.")] = 100_000,
    rows: Annotated[
        int, typer.Option(min=0, help="Rows the main table starts with (0: a number that suits the changes).")
    ] = 0,
) -> None:
    """Generate a workload: tables, subscriptions and changes, ready for `tidings replay`.

    Example: python -m research workload topk-uniform --out data --subscriptions 100000 --changes 1000000
    """
    if name == "list":
        show_list({known: entry.description for known, entry in WORKLOADS.items()})
        return
    made = workloads.find(name).outputs(seed, {"subscriptions": subscriptions, "changes": changes, "rows": rows})
    write_outputs(made, out)


replay.add_to(app)


if __name__ == "__main__":
    strategies.register()
    run_app(app)
