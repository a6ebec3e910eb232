"""A durable engine in one process: everything it takes in is in its journal before anybody is told of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from tidings.files import load_files, loaded_lines, write_text
from tidings.live.counters import totals
from tidings.live.job import NOT_WHOLE, check_goes_on
from tidings.live.journal import Entry, Journal
from tidings.model.errors import UsageError
from tidings.model.quarantine import Quarantined
from tidings.pipeline.edge.dispatch import PlaceOptions
from tidings.pipeline.live import WITH_GATEWAYS, WITHOUT_GATEWAYS, Input, Live, Output
from tidings.pipeline.replica.replica import Replica
from tidings.sql import parse_catalog

_PLAN, _JOURNAL = "engine.json", "journal"
_FORMAT = 1
"""Of base and journal. Raised when a change makes older ones unreadable."""
_LONG = 4
"""A journal that is so many times as long as it should be is folded at once; else when there is nothing else to do."""

Tell = Callable[[int, Output], object]
Offsets = dict[str, Any]


def check(folder: Path, catalog_sql: str, *, has_places: bool = False) -> bool:
    """Whether there is state to go on from. UsageError if it cannot be used with this catalog.

    has_places: whether the job has gateways.
    """
    catalog = parse_catalog(catalog_sql)
    path = folder / _PLAN
    if not path.exists():
        if any((folder / _JOURNAL).glob("*")):
            raise UsageError(f"{path} is missing, so {folder} {NOT_WHOLE}")
        return False
    try:
        known = json.loads(path.read_text())
        format, former, had_places = known["format"], known["catalog"], known.get("places") is not None
    except (ValueError, KeyError):
        raise UsageError(f"{path} is damaged, so {folder} {NOT_WHOLE}") from None
    if format != _FORMAT:
        raise UsageError(
            f"the checkpoint is of format {format}, this version of Tidings writes {_FORMAT}: go on with the version that "
            "wrote it, or begin with a new checkpoint"
        )
    if had_places != has_places:
        raise UsageError(WITH_GATEWAYS if had_places else WITHOUT_GATEWAYS)
    check_goes_on(catalog, parse_catalog(former))
    return True


class DurableEngine:
    """A `Live` with a journal. Micro-batches go one by one: `run`, then `settle` when their output is where it belongs."""

    def __init__(
        self,
        folder: Path,
        catalog_sql: str,
        *,
        by_commit: bool = True,
        load: Path | None = None,
        before_fold: Callable[[], object] | None = None,
        places: PlaceOptions | None = None,
    ) -> None:
        """folder: a checkpoint that was checked. load: rows that a new engine has before the first micro-batch.

        before_fold: called before a new base replaces the journal, from which output cannot be made again then. places: of a
        job with gateways.
        """
        self._folder = folder
        self._before_fold = before_fold
        self._plan: dict[str, Any] = {"format": _FORMAT, "catalog": catalog_sql, "by_commit": by_commit}
        self._plan["places"] = None if places is None else [list(places.names), places.receive, places.sender]
        path = folder / _PLAN
        known: dict[str, Any] = (
            json.loads(path.read_text()) if path.exists() else {**self._plan, "has_load": load is not None}
        )
        self._journal = Journal(folder / _JOURNAL)
        base = self._journal.base_state()
        self.offsets: Offsets = {}
        """Where each source stands behind the last micro-batch, by name."""
        if base is not None:
            head, _, base = base.partition(b"\n")
            known, self.offsets = msgspec.json.decode(head)
        self._former = known
        self._live = _live_of(known)
        self.before = totals(self.replica)
        """What was counted before the last micro-batch."""
        self._unloaded: list[Quarantined] = []
        self._is_loading = base is None and known["has_load"]
        if base is not None:
            self._live.load(base)
        elif self._is_loading:
            if load is None:
                raise UsageError("the first start ended before its rows were loaded: give it --load once more")
            for position, lines in loaded_lines(load_files(load)):
                self._unloaded += self._live.load_rows(lines, position)
        if not path.exists():
            write_text(path, json.dumps(known))

    @property
    def replica(self) -> Replica:
        return self._live.replica

    @property
    def batch(self) -> int:
        """Number of the last micro-batch, from 1 on."""
        return self._journal.last

    @property
    def nbytes(self) -> int:
        return self._live.nbytes

    def restore(self, tell: Tell, told: int | None = None) -> None:
        """Repeats the micro-batches of the journal.

        tell: called with the number and the output of each one that the sink may lack. told: the last one that it has; None:
        as the journal says, in which at most one is in doubt.
        """
        told = self._journal.told if told is None else told
        for entry in self._journal.entries():
            taken = self._live.read(entry.changes, entry.events)
            self.offsets = entry.offsets
            if entry.batch <= told:
                self._live.replay(taken)
            else:
                tell(entry.batch, self._apply(taken))
                self._journal.mark(entry.batch)
        if self._journal.told < self._journal.last:
            self._journal.mark(self._journal.last)
        if self._is_loading and not self._journal.last:
            tell(1, self.run([], [], {}))
            self._journal.mark(1)
        if any(self._former.get(name) != value for name, value in self._plan.items()):
            self._move_on()
        elif self._live.needs_base:
            self._fold()

    def _move_on(self) -> None:
        """Goes on under another catalog. What is in the journal had to be repeated under the one it was written with."""
        state = self._live.dump()
        self._live = _live_of(self._plan)
        self._live.load(state)
        self._former = {**self._former, **self._plan}
        if self._journal.last:
            self._fold()
        write_text(self._folder / _PLAN, json.dumps(self._former))

    def run(self, changes: list[bytes], events: list[bytes], offsets: Offsets) -> Output:
        """A micro-batch: into the journal, then into the engine. changes, events: blocks of lines (`stream_lines`).

        offsets: where each source stands behind it.
        """
        entry = Entry(self._journal.last + 1, {**self.offsets, **offsets}, changes, events)
        self._journal.append(entry)
        self.offsets = entry.offsets
        return self._apply(self._live.read(changes, events))

    def settle(self) -> None:
        """Says that the output of the last micro-batch is where it belongs."""
        self._journal.mark(self._journal.last)
        if self._live.needs_base or self._journal.weight > _LONG:
            self._fold()

    def rest(self) -> None:
        """To be called when there is nothing to do: a new base is written, if it is time for one."""
        if self._journal.weight > 1:
            self._fold()

    def _fold(self) -> None:
        if self._before_fold is not None:
            self._before_fold()
        head = msgspec.json.encode([self._former, self.offsets])
        self._journal.fold([head, b"\n", self._live.dump()])

    def _apply(self, taken: Input) -> Output:
        self.before = totals(self.replica)
        found = self._live.apply(taken)
        unloaded, self._unloaded = self._unloaded, []
        return found._replace(refused=[*unloaded, *found.refused]) if unloaded else found

    def close(self) -> None:
        self._journal.close()


def _live_of(plan: dict[str, Any]) -> Live:
    places = plan.get("places")
    return Live(
        parse_catalog(plan["catalog"]),
        by_commit=plan["by_commit"],
        places=None if places is None else PlaceOptions(tuple(places[0]), places[1], plan["catalog"], places[2]),
    )
