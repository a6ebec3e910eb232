"""`python -m research`: benches of single families, by the parts of `tidings bench`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from research.bench import BENCHES, FamilyOptions, find
from tidings.cli.bench import measure, names_of, show_list, sizes_of
from tidings.cli.main import run_app
from tidings.model.errors import UsageError

app = typer.Typer(
    name="python -m research",
    help="Measurements of single families, and the data of published work.",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
)


@app.callback()
def _options() -> None:
    pass


@app.command(epilog="Benches: " + "; ".join(f"{name} ({e.description})" for name, e in BENCHES.items()))
def bench(
    name: Annotated[str, typer.Argument(help="Which bench; `list` shows them.")],
    sizes: Annotated[
        str, typer.Option(help="Numbers of subscriptions, such as 10000,100000 (default: as the bench has them).")
    ] = "",
    changes: Annotated[int, typer.Option(min=20_000, help="Changes per size, in batches of 10,000.")] = 100_000,
    cases: Annotated[str, typer.Option(help="offers: what to measure, such as geometric (default: all).")] = "",
    batches: Annotated[
        str, typer.Option(help="offers: publications per batch, such as 1,100 (default: several).")
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
        show_list(BENCHES)
        return
    entry = find(name)
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


if __name__ == "__main__":
    run_app(app)
