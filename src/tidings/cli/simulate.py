"""`tidings simulate`: the content-driven network on a simulated Internet."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

if TYPE_CHECKING:
    from tidings.simulator.config import Config
    from tidings.simulator.files import Traffic
    from tidings.simulator.simulation import Simulation

_NAMED = 5
"""So many seeds that fail are named."""


def add_to(app: typer.Typer) -> None:
    app.command()(simulate)


def simulate(
    config: Path = typer.Argument(..., help="What to simulate (config.toml)."),
    points: Path = typer.Option(..., help='Subscriptions: {"id": .., "point": [..]}, one a line (points.jsonl).'),
    messages: Path = typer.Option(
        ..., help='{"id": .., "at": ms, "boxes": [[[lo..], [hi..]], ..], "payload": id, "bytes": n}, one a line.'
    ),
    out: Path = typer.Option(..., help="Where figures go (result.json)."),
    deliveries: Path | None = typer.Option(None, help="Write who was told what, by broker (deliveries.jsonl)."),
    seed: int | None = typer.Option(None, min=0, help="One run. The same seed gives the same figures. Default: 0."),
    seeds: str | None = typer.Option(None, metavar="FIRST:END", help="Many runs, such as 0:50; stops at none."),
    trace: Path | None = typer.Option(None, help="Write everything that nodes send, to see how a run went wrong."),
    picture: Path | None = typer.Option(None, help="Draw what brokers sent and how far messages went (.svg)."),
) -> None:
    """Route messages, each with a region, to the points in their regions, through brokers on a simulated Internet.

    Every broker owns a zone of space, and runs its own code; clock and links are simulated. Every delivery is checked: it ends
    with 1, and names the seed, if a point was missed, told twice, or told without the payload, or if a message was never
    acknowledged. The config has, with their defaults:

    overlay = "can" (or "tree", "btree" in one dimension, "unicast"); brokers = 64; nodes = 2000 (of the network below);
    cache_bytes = 0 (payloads that a broker keeps; 0: none caches); plain_brokers = 0.0 (share that never caches);

    [faults] loss = 0.0, delay_ms = [1, 1], restarts, partitions, evictions, splits, merges = 0 (of brokers, in a run);

    [rules] neighbour_ack, link_session, ask_source, server_keeps, stripped_flag = true (of the payload cache).

    Example: tidings simulate can.toml --points points.jsonl --messages messages.jsonl --out result.json --seeds 0:50
    """
    from tidings.files import check_files, replacing, write_json, write_text
    from tidings.model.errors import RunError, UsageError
    from tidings.simulator.config import read_config
    from tidings.simulator.files import delivery_lines, read_traffic
    from tidings.simulator.simulation import Simulation
    from tidings.terminal import announce_compiling, progress

    check_files((config, points, messages), (out, deliveries, trace, picture))
    wanted = _seeds(seed, seeds)
    if len(wanted) > 1 and any(path is not None for path in (deliveries, trace, picture)):
        raise UsageError("--deliveries, --trace and --picture are of one run: they go with --seed, not with --seeds")
    if picture is not None and picture.suffix.lower() != ".svg":
        raise UsageError(f"--picture takes the name of an SVG file, such as run.svg, not {str(picture)!r}")
    settings = read_config(config)
    announce_compiling()
    traffic = read_traffic(points, messages)
    _check_dims(settings, traffic)
    results: list[dict[str, Any]] = []
    failed: list[str] = []
    for number in wanted:
        run = Simulation(settings, traffic, number, keeps_deliveries=deliveries is not None)
        with progress() as display:
            task = display.add_task(f"seed {number}", total=len(traffic.ids))
            _run(run, lambda done, task=task, display=display: display.update(task, completed=done), trace)
        results.append(run.result())
        if not run.outcome.is_right:
            failed.append(_problem(number, run))
    write_json(out, results[0] if seeds is None else {"runs": results})
    if deliveries is not None:
        with replacing(deliveries) as sink:
            sink.writelines(delivery_lines(run.deliveries()))
    if picture is not None:
        from tidings.simulator.picture import draw

        title = f"{settings.overlay}, {settings.brokers:,} brokers, {len(traffic.ids):,} messages"
        write_text(picture, draw(run.metrics.out[:-1], run.metrics.delivered_after, title))
    if failed:
        more = f"; and {len(failed) - _NAMED:,} more seeds" if len(failed) > _NAMED else ""
        raise RunError("; ".join(failed[:_NAMED]) + more)


def _seeds(seed: int | None, seeds: str | None) -> list[int]:
    from tidings.model.errors import UsageError

    if seeds is None:
        return [seed or 0]
    if seed is not None:
        raise UsageError("--seed is for one run, --seeds for many: give one of them")
    first, colon, end = seeds.partition(":")
    if not (
        colon and first.isascii() and first.isdigit() and end.isascii() and end.isdigit() and int(first) < int(end)
    ):
        raise UsageError(f"--seeds takes the first and the one behind the last, such as 0:50, not {seeds!r}")
    return list(range(int(first), int(end)))


def _check_dims(config: Config, traffic: Traffic) -> None:
    from tidings.model.errors import UsageError

    dims = traffic.points.shape[1]
    if config.overlay == "btree" and dims != 1:
        raise UsageError(f"the overlay btree is for points of one coordinate; these have {dims}")


def _run(run: Simulation, on_event: Any, trace: Path | None) -> None:
    if trace is None:
        run.run(on_event)
        return
    from tidings.files import replacing
    from tidings.simulator.links import trace_line

    with replacing(trace) as sink:
        run.run(on_event, lambda now, frame: sink.write(trace_line(now, frame)))


def _problem(seed: int, run: Simulation) -> str:
    found = run.outcome
    counts = {"missed": found.lost, "told twice": found.twice, "told without the payload": found.without_payload}
    counts["messages never acknowledged"] = found.unacknowledged
    said = ", ".join(f"{count:,} {what}" for what, count in counts.items() if count)
    return f"seed {seed}: {said} (run it again with --seed {seed} --trace trace.jsonl)"
