"""`tidings replay`: recorded changes through an engine, to the notifications every subscriber would have got."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from importlib.abc import MetaPathFinder
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from tidings.model.catalog import Catalog
    from tidings.pipeline.door import Door
    from tidings.pipeline.recorded import RecordedEngine
    from tidings.placed import PlacedEngine

_SMALL_MAX = 300_000_000
"""Bytes of subscriptions times bytes of changes: about 20,000 pairs, a fifth of a second."""
_CHANGE_BYTES = 100
"""Of a usual change."""
DEFAULT_BATCH = {"inline": 10_000, "spark": 50_000}


class EngineName(StrEnum):
    inline = "inline"
    spark = "spark"


class SenderName(StrEnum):
    entered = "entered"
    regions = "regions"


class Notify(StrEnum):
    commit = "commit"
    record = "record"


def add_to(app: typer.Typer) -> None:
    app.command()(replay)


def replay(
    catalog: Path = typer.Option(..., help="Tables: CREATE TABLE statements (catalog.sql)."),
    subscriptions: Path = typer.Option(..., help="Subscriptions, one JSON object a line (subscriptions.jsonl)."),
    changes: Path = typer.Option(..., help="Changes, one JSON object a line (changes.jsonl)."),
    out: Path = typer.Option(..., help="Where the notifications go (out.jsonl)."),
    engine: EngineName = typer.Option(EngineName.inline, help="In this process, or on Spark."),
    batch: int = typer.Option(0, min=0, max=10**9, help="Changes per micro-batch (0: the engine's default)."),
    strategy: list[str] = typer.Option([], metavar="FAMILY=NAME", help="How a family is served; repeatable."),
    quarantine: Path | None = typer.Option(None, help="Where refused records go (default: OUT.quarantine.jsonl)."),
    stats: Path | None = typer.Option(None, help="Write counts and times as JSON."),
    load: Path | None = typer.Option(
        None,
        help="Rows that are there before the first change: records as in --changes, without seq; a file or a folder.",
    ),
    notify: Notify = typer.Option(
        Notify.commit, help="Notify once per transaction (records with the same 'tx'), or of every record."
    ),
    places: int = typer.Option(
        0,
        min=0,
        max=4096,
        help="Evaluate subscriptions at so many gateways, each over the rows it is sent (0: at none).",
    ),
    sender: SenderName = typer.Option(SenderName.entered, help="How rows find the gateways that need them."),
    master: str = typer.Option("local[*]", help="Spark master, with --engine spark."),
    shards: int = typer.Option(0, min=0, help="Shares of the subscriptions on Spark (0: as many as cores)."),
) -> None:
    """Replay changes through an engine and write every notification.

    Refused records never stop the run: they go to the quarantine file, each with the reason. A run on Spark that was
    interrupted goes on where it stopped when the same command is given again. Records with the same 'tx' are one
    transaction: subscribers are told its net effect, once.

    Example: tidings replay --catalog catalog.sql --subscriptions subscriptions.jsonl --changes changes.jsonl --out out.jsonl
    """
    from tidings.families.registry import parse_strategies, sending_strategies
    from tidings.files import check_files, check_kinds, load_files, read_catalog
    from tidings.model.errors import UsageError
    from tidings.terminal import announce_compiling, compile_kernels

    quarantine_path = quarantine or out.with_name(out.name + ".quarantine.jsonl")
    loaded = [] if load is None else load_files(load)
    check_files((catalog, subscriptions, changes, *loaded), (out, quarantine_path, stats))
    check_kinds(subscriptions, changes)
    tables = read_catalog(catalog)
    strategies = parse_strategies(strategy)
    if places and engine is EngineName.spark:
        raise UsageError("--places is for --engine inline: there the places are objects of one process")
    if sender is SenderName.regions and not places:
        raise UsageError("--sender says how rows find gateways: say how many there are with --places N")
    size = batch or DEFAULT_BATCH[engine.value]
    by_commit = notify is Notify.commit
    if engine is EngineName.spark:
        from tidings.pipeline.warm import STEPS
        from tidings.signals import Stop
        from tidings.spark.replay import replay_on_spark

        if sending_strategies(strategies):
            typer.echo(
                "note: on Spark all subscriptions are evaluated over shared rows; --strategy changes nothing", err=True
            )
        with Stop():
            compile_kernels(STEPS)
            files = (catalog, subscriptions, changes, out, quarantine_path)
            run = replay_on_spark(*files, [size], master, shards, load=load, by_commit=by_commit)
    else:
        announce_compiling()
        run = _replay_inline(
            tables,
            subscriptions,
            loaded,
            changes,
            out,
            quarantine_path,
            size,
            strategies,
            places,
            sender.value,
            by_commit=by_commit,
        )
    if quarantine is None and run["quarantined"] == 0:
        quarantine_path.unlink(missing_ok=True)
    if stats is not None:
        from tidings.files import write_json

        write_json(stats, run)
    summary = f"{run['changes']:,} changes, {run['messages']:,} messages, {run['notifications']:,} notifications"
    refused = f"; {run['quarantined']:,} records refused, see {quarantine_path}" if run["quarantined"] else ""
    typer.echo(f"{summary} in {run['seconds']:.1f} s{refused}", err=True)


def _replay_inline(
    catalog: Catalog,
    subscriptions: Path,
    loaded: list[Path],
    changes: Path,
    out: Path,
    quarantine: Path,
    batch: int,
    strategies: dict[str, str],
    places: int,
    sender: str,
    *,
    by_commit: bool,
) -> dict[str, Any]:
    from itertools import islice, repeat

    from tidings.families.registry import sending_strategies
    from tidings.files import loaded_lines, only_one, open_input, peak_rss_mb, read_lines, replacing, write_lines
    from tidings.pipeline.commits import micro_batches
    from tidings.pipeline.door import Door
    from tidings.terminal import progress

    _hide_pandas_from_pyarrow()
    is_plain = not strategies and not places and _is_small(subscriptions, [changes, *loaded])
    door = Door(catalog, keeps_queries=is_plain)
    with only_one(out), replacing(out) as sink, replacing(quarantine) as refused, progress() as display:
        task = display.add_task("subscriptions", total=None)
        with open_input(subscriptions) as source:
            entries = door.read(read_lines(source), lambda n: display.update(task, completed=n))
        write_lines(refused, (entry.line() for entry in entries))
        count = sum(path.stat().st_size for path in (changes, *loaded)) // _CHANGE_BYTES
        placed: PlacedEngine | None = None
        # Who names a strategy by which rows find gateways wants them sent, if only to a single one.
        chosen = sending_strategies(strategies)
        if places or chosen:
            from tidings.placed import PlacedEngine

            named = chosen if chosen or sender == "regions" else None
            placed = PlacedEngine(catalog, places or 1, door, named, by_commit=by_commit)
        engine = placed or _engine(catalog, strategies, door, count, by_commit=by_commit)
        began = time.monotonic()
        engine.refuse(entries)
        if loaded:
            task = display.add_task("bytes of rows", total=sum(path.stat().st_size for path in loaded))
        for _, chunk in loaded_lines(loaded):
            write_lines(refused, (entry.line() for entry in engine.load(chunk)))
            display.update(task, advance=sum(map(len, chunk)) + len(chunk))
        task = display.add_task("bytes of changes", total=changes.stat().st_size or None)
        with open_input(changes) as source:
            lines = read_lines(source)
            batches = micro_batches(lines, repeat(batch)) if by_commit else iter(lambda: list(islice(lines, batch)), [])
            for chunk in batches:
                result = engine.feed(chunk)
                sink.writelines(result.notifications.text())
                write_lines(refused, (entry.line() for entry in result.refused))
                display.update(task, completed=source.tell() if source.seekable() else None)
        sink.writelines(engine.finish().notifications.text())
    run = engine.stats.summary(time.monotonic() - began, peak_rss_mb())
    return run if placed is None or not places else run | placed.places()


def _is_small(subscriptions: Path, changes: list[Path]) -> bool:
    """Whether asking every query about every change takes less time than loading compiled code."""
    if not all(path.is_file() for path in (subscriptions, *changes)):
        return False
    return subscriptions.stat().st_size * sum(path.stat().st_size for path in changes) <= _SMALL_MAX


def _engine(
    catalog: Catalog, strategies: dict[str, str], door: Door, changes: int, *, by_commit: bool
) -> RecordedEngine:
    """changes: about how many there will be."""
    if door.queries is not None:
        from tidings.plain import PlainEngine, serves

        if serves(door, changes):
            return PlainEngine(catalog, door, by_commit=by_commit)
    # Compiled code takes most of a second to load, and longer where it is compiled first.
    from tidings.engine import Engine

    return Engine(catalog, strategies, door, by_commit=by_commit)


def _hide_pandas_from_pyarrow() -> None:
    """Saves a quarter of a second: pyarrow imports pandas, where there is one, to see if a list is of its making.

    It asks at the first list it gets, and remembers. (Where pandas is really wanted, as in `to_pandas`, it tries again.)
    """
    import pyarrow as pa

    hidden = _Hidden()
    sys.meta_path.insert(0, hidden)
    try:
        pa.array([])
    finally:
        sys.meta_path.remove(hidden)


class _Hidden(MetaPathFinder):
    def find_spec(self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None) -> None:
        if fullname == "pandas":
            raise ImportError("hidden from pyarrow")
