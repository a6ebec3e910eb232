"""`tidings paint`: a picture of where one change goes in subscription space."""

from __future__ import annotations

from pathlib import Path

import typer


def add_to(app: typer.Typer) -> None:
    app.command()(paint)


def paint(
    catalog: Path = typer.Option(..., help="Tables (catalog.sql)."),
    subscriptions: Path = typer.Option(..., help="Subscriptions (subscriptions.jsonl)."),
    changes: Path = typer.Option(..., help="Changes (changes.jsonl)."),
    change: int = typer.Option(..., min=1, metavar="SEQ", help="The change to paint."),
    out: Path = typer.Option(..., help="The picture to write, such as change.svg."),
    id: str | None = typer.Option(None, help="Paint the plane this subscription lies in, and circle it."),
) -> None:
    """Draw the plane of ranges, with a dot for every subscription, and the tiles that one change is sent to.

    For queries with one range of values: `WHERE a BETWEEN x AND y`, with or without ORDER BY .. LIMIT; on tables of
    constraints for those that compare one attribute. Shown is the plane to which the change sends most, unless --id asks
    for another. Each colour is one message; numbers give the order.

    Example: tidings paint --catalog catalog.sql --subscriptions subscriptions.jsonl --changes changes.jsonl
    --change 12000 --out change.svg
    """
    from tidings.files import check_files, check_kinds, read_catalog
    from tidings.model.errors import UsageError
    from tidings.painting import collect, draw
    from tidings.terminal import announce_compiling

    if out.suffix.lower() != ".svg":
        raise UsageError(f"--out takes the name of an SVG file, such as change.svg, not {str(out)!r}")
    check_files((subscriptions, changes), (out,))
    check_kinds(subscriptions, changes)
    announce_compiling()
    scene = collect(read_catalog(catalog), subscriptions, changes, change, id)
    out.write_text(draw(scene), encoding="utf-8")
