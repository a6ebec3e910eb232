"""What a live job needs to know, whatever engine runs it: a catalog, sources, a sink, and the checkpoint it goes on from."""

from __future__ import annotations

import re
import uuid
from dataclasses import dataclass
from pathlib import Path

from tidings.endpoint import Endpoint
from tidings.files import load_files, write_text
from tidings.model.catalog import Catalog
from tidings.model.errors import UsageError
from tidings.pipeline.edge.dispatch import PlaceOptions
from tidings.sinks import places

NOT_WHOLE = "is not a whole checkpoint: restore it, or begin with a new checkpoint and a new sink"
_RUN = "run-id"
_SECONDS = {"microsecond": 1e-6, "millisecond": 1e-3, "second": 1.0, "minute": 60.0, "hour": 3_600.0, "day": 86_400.0}
_SECONDS["week"] = 7 * _SECONDS["day"]
_PART = rf"(\d+)\s*({'|'.join(_SECONDS)})s?\s*"


@dataclass(frozen=True)
class Job:
    """checkpoint: folder from which the job goes on when it starts again.

    trigger: `once` for all that is there, then the end; else an interval such as `1 second`; empty: as fast as it can.
    start: where a new job begins to read changes (`sources.open_source`). load: rows that a new job has before the first
    change. by_commit: as in `RowStore`.
    """

    catalog_sql: str
    source: Endpoint
    subscriptions: Endpoint
    sink: Endpoint
    checkpoint: Path
    trigger: str = ""
    start: str = ""
    load: Path | None = None
    by_commit: bool = True

    @property
    def identity(self) -> str:
        """A text that tells the job from others, for as long as its checkpoint lives; empty: it has none yet."""
        path = self.checkpoint / _RUN
        return path.read_text() if path.exists() else ""

    def identify(self) -> None:
        """Gives the job an identity, if it has none."""
        if not self.identity:
            write_text(self.checkpoint / _RUN, uuid.uuid4().hex)

    @property
    def interval(self) -> float | None:
        """Seconds from the beginning of one micro-batch to that of the next; None if the trigger names no interval."""
        if self.trigger in ("", "once"):
            return None
        if not re.fullmatch(rf"\s*(interval\s+)?({_PART})+", self.trigger, re.IGNORECASE):
            raise UsageError(f"--trigger is 'once' or an interval such as '1 second', not {self.trigger!r}")
        parts = re.findall(_PART, self.trigger, re.IGNORECASE)
        return sum(int(number) * _SECONDS[unit.lower()] for number, unit in parts)

    def check_load(self) -> None:
        """UsageError if there is nothing to load."""
        if self.load is not None:
            load_files(self.load)

    @property
    def places(self) -> PlaceOptions | None:
        """The gateways of the job; None: it has none."""
        return places.options_of(self.sink, self.catalog_sql)

    @property
    def requests_endpoint(self) -> Endpoint | None:
        """Where gateways write subscription events of their own."""
        found = places.requests_of(self.sink)
        spool = str(self.checkpoint / "requests")
        return found if found is None or found.format != "files" else found.with_defaults(spool=spool)

    @property
    def changes_endpoint(self) -> Endpoint:
        return changes_endpoint(self.source, self.catalog_sql, self.checkpoint / "source")

    @property
    def events_endpoint(self) -> Endpoint:
        """The source of subscription events; of PostgreSQL a table, by default `subscriptions`.

        It has the columns id and sql, and place where there are gateways.
        """
        source, spool = self.subscriptions, str(self.checkpoint / "subscriptions")
        if source.format != "postgres":
            return source.with_defaults(spool=spool) if source.format == "files" else source
        table = source.options.get("tables", "subscriptions")
        place = ", place TEXT" if self.places is not None else ""
        catalog = f'CREATE TABLE "{table.rpartition(".")[2]}" (id TEXT PRIMARY KEY, sql TEXT{place});'
        names = {"tables": table, "slot": "tidings_subscriptions", "publication": "tidings_subscriptions"}
        return source.with_defaults(catalog=catalog, spool=spool, **names)


def changes_endpoint(source: Endpoint, catalog_sql: str, spool: Path) -> Endpoint:
    """A source of changes, with what it must know of the job. spool: a folder for what it has to keep."""
    if source.format == "postgres":
        return source.with_defaults(catalog=catalog_sql, spool=str(spool))
    return source.with_defaults(spool=str(spool)) if source.format == "files" else source


def check_goes_on(catalog: Catalog, former: Catalog) -> None:
    """UsageError if a job with this catalog cannot go on from a checkpoint of one with the other."""
    objection = catalog.objection_to(former)
    if objection is not None:
        raise UsageError(
            f"the catalog does not go on from that of the checkpoint: {objection}. Tables may be added, and columns "
            "by ALTER TABLE .. ADD COLUMN; for anything else begin with a new checkpoint"
        )
