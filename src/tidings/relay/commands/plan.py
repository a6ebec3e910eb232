"""`tidings plan`: which views feed which, within capacities."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from tidings.relay.commands import EngineName

if TYPE_CHECKING:
    from tidings.relay.load import Loads
    from tidings.relay.plan import RelayPlan
    from tidings.relay.planner import Finding


def add_to(app: typer.Typer) -> None:
    app.command()(plan)


def plan(
    views: Path = typer.Option(..., help="Views, one JSON object a line (views.jsonl)."),
    documents: Path = typer.Option(..., help="Folder of sample documents: how large messages are is measured on them."),
    out: Path = typer.Option(..., help="Where the plan goes (plan.json)."),
    sites: Path | None = typer.Option(None, help="Sites with capacities and positions (sites.jsonl)."),
    catalog: Path | None = typer.Option(None, help="Tables of views that have SQL (catalog.sql)."),
    capacity: int | None = typer.Option(
        None, help="How many views elsewhere a site may feed; a view without a site is its own. Default: no limit."
    ),
    bandwidth: float | None = typer.Option(
        None, help="Bytes a second that a site may send elsewhere, by the samples and --rate. Default: no limit."
    ),
    rate: float = typer.Option(1.0, help="Documents a second, with --bandwidth."),
    publisher_capacity: int | None = typer.Option(
        None, help="How many views the publisher may feed. Default: no limit."
    ),
    rewritings: int = typer.Option(30, min=1, max=1000, help="Ways to compute a view that are considered, at most."),
    partial: bool = typer.Option(
        False,
        "--partial",
        help="Views that others know a part of are fed by these; the publisher sends the rest only.",
    ),
    samples: int = typer.Option(20, min=0, help="Documents that are looked at."),
    latency: bool = typer.Option(True, help="Reduce latency after use, at 7% more use at most."),
    alpha: float = typer.Option(1.0, help="What a byte of use counts, where latency is reduced."),
    beta: float | None = typer.Option(
        None,
        help="What a hop of one view's latency counts, in bytes. Default: such that half the latency is worth half the use.",
    ),
    slack: float = typer.Option(
        1.0, help="How many times its capacity a site may use where latency is reduced; 1.5 leaves room to do so."
    ),
    picture: Path | None = typer.Option(None, help="Draw the network (.svg or .png)."),
    engine: EngineName = typer.Option(
        EngineName.inline, help="Where rewritings are found: in this process, or on Spark."
    ),
    master: str = typer.Option("local[*]", help="Spark master, with --engine spark."),
) -> None:
    """Plan how views feed each other, such that nobody feeds more than it can, with least use and then little latency.

    Every view is fed by the publisher of the documents, or computed from views that know enough. The plan names the inputs of
    each; `tidings relay run` runs it. Latency is reduced by whatever makes alpha * use + beta * latency less; sites that feed
    much are full by then, and --slack 1.5 lets them feed half as many more for it. A site has two limits: --capacity views, and
    --bandwidth bytes a second. With --publisher-capacity there may be no
    plan: then you are told how many views the publisher must feed at least, by the --rewritings that were considered. With
    --partial a view that others know a part of is fed by them, and by the publisher with the rest.

    Example: tidings plan --views views.jsonl --capacity 50 --documents documents --out plan.json --picture plan.svg
    """
    from itertools import islice

    from tidings.files import check_files, check_outside, read_catalog, replacing
    from tidings.model.errors import UsageError
    from tidings.relay.errors import DocumentError
    from tidings.relay.files import read_documents, read_sites, read_views
    from tidings.relay.load import loads_of
    from tidings.relay.plan import plan_json
    from tidings.relay.planner import plan_relay
    from tidings.relay.planning.latency import Haste
    from tidings.relay.planning.solve import Infeasible
    from tidings.relay.summary import summary_lines
    from tidings.terminal import announce_compiling

    check_files([path for path in (views, sites, catalog) if path is not None], (out, picture))
    check_outside(documents, (out, picture))
    _check_capacities(capacity, publisher_capacity, bandwidth, rate)
    _check_weights(alpha, beta, slack)
    if picture is not None and picture.suffix.lower() not in (".svg", ".png"):
        raise UsageError(f"the name of the picture ends in .svg or .png: {picture}")
    announce_compiling()
    places = read_sites(sites) if sites else []
    tables = None if catalog is None else read_catalog(catalog)
    everyone = read_views(views, [site.id for site in places] if sites else None, tables)
    found = list(islice(read_documents(documents, tables), samples))
    readable = [document for _, document in found if not isinstance(document, DocumentError)]
    haste = Haste(alpha, beta, slack) if latency else None
    try:
        with _finding(engine, master) as find:
            planned = plan_relay(
                everyone,
                readable,
                sites=places,
                capacity=capacity,
                bandwidth=bandwidth,
                rate=rate,
                publisher_capacity=publisher_capacity,
                rewritings_max=rewritings,
                find=find,
                partial=partial,
                haste=haste,
                tell=_telling(),
            )
    except Infeasible as error:
        raise UsageError(f"{error}: --publisher-capacity {error.fed}") from None
    loads = loads_of(planned.plan, everyone, planned.roomy.sites, planned.roomy.capacity)
    if picture is not None:
        _draw(planned.plan, loads, picture)
    with replacing(out) as sink:
        sink.write(plan_json(planned.plan))
    for line in summary_lines(planned.plan, loads, distinct=len(planned.groups.heads)):
        typer.echo(line, err=True)
    if planned.limits.has_bandwidth:
        sent = planned.limits.sent(planned.plan, everyone, planned.message_bytes)
        typer.echo(f"bandwidth  {max(sent.values()):,.0f} bytes a second from the site that sends most", err=True)
    if len(readable) < len(found):
        typer.echo(
            f"{len(found) - len(readable)} of {len(found)} sample documents cannot be read and did not count", err=True
        )


def _draw(plan: RelayPlan, loads: Loads, path: Path) -> None:
    from tidings.files import write_bytes
    from tidings.relay.painting import paint_plan, png, svg

    picture = paint_plan(plan, loads)
    write_bytes(path, [png(picture) if path.suffix.lower() == ".png" else svg(picture).encode()])


@contextmanager
def _finding(engine: EngineName, master: str) -> Iterator[Finding]:
    """How rewritings are found, with a bar that shows how far it is."""
    from tidings.kernels.arrays import F64
    from tidings.relay.rewriting import PatternTable, Rewritings, find_rewritings
    from tidings.terminal import progress

    search: Callable[..., Rewritings] = find_rewritings
    with ExitStack() as stack:
        if engine is EngineName.spark:
            from tidings.relay.spark.rewriting import find_rewritings_on_spark
            from tidings.spark.session import spark_session

            search = partial(find_rewritings_on_spark, stack.enter_context(spark_session("tidings plan", master)))

        def find(table: PatternTable, cost: F64, k: int) -> Rewritings:
            with progress() as display:
                task = display.add_task("rewritings", total=len(table))
                return search(table, cost, k, on_progress=lambda count: display.update(task, advance=count))

        yield find


def _telling() -> Callable[[str], None]:
    """Tells a person at the terminal what was done, and when."""
    import sys
    import time

    from tidings.terminal import console

    if not sys.stderr.isatty():
        return lambda sentence: None
    screen, start = console(), time.monotonic()
    return lambda sentence: screen.print(f"{time.monotonic() - start:7.1f} s  {sentence}", style="dim", highlight=False)


def _check_capacities(
    capacity: int | None, publisher_capacity: int | None, bandwidth: float | None, rate: float
) -> None:
    from tidings.model.errors import UsageError

    if capacity is not None and capacity < 1:
        raise UsageError(f"--capacity {capacity}: a view that may feed nobody cannot relay; give 1 or more")
    if bandwidth is not None and not 0 < bandwidth < math.inf:
        raise UsageError(f"--bandwidth {bandwidth}: bytes a second, more than 0")
    if not 0 < rate < math.inf:
        raise UsageError(f"--rate {rate}: documents a second, more than 0")
    if publisher_capacity is not None and publisher_capacity < 1:
        raise UsageError(f"--publisher-capacity {publisher_capacity}: the publisher must feed someone; give 1 or more")


def _check_weights(alpha: float, beta: float | None, slack: float) -> None:
    from tidings.model.errors import UsageError

    if not 0 <= alpha < math.inf or not 0 <= (beta or 0.0) < math.inf:
        raise UsageError(f"--alpha {alpha} --beta {beta}: weights are numbers from 0 on")
    if alpha == 0 and not beta:
        raise UsageError("--alpha 0: without --beta, nothing counts; say what a hop is worth")
    if not 1 <= slack < math.inf:
        raise UsageError(f"--slack {slack}: capacities times 1 or more")
