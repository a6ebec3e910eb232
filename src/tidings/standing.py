"""Where one subscription of a replay stands: its life found in the file, its notifications counted, its family asked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

import numpy as np

from tidings.engine import Engine
from tidings.families.optional import Trace, Tracing
from tidings.families.registry import classify
from tidings.files import open_input, read_lines
from tidings.kernels.events import Told
from tidings.kernels.rows import I64
from tidings.model.catalog import Catalog
from tidings.model.change import SEQ_MAX
from tidings.model.errors import UsageError
from tidings.model.points import PointBatch
from tidings.pipeline.door import lives
from tidings.pipeline.replica.batch import Batch
from tidings.pipeline.replica.replica import Replica
from tidings.pipeline.table_changes import changes_of
from tidings.sql import Compiler
from tidings.terminal import progress

_BATCH = 10_000


@dataclass(frozen=True)
class Life:
    """One creation of a subscription, up to its drop if there is one."""

    id: str
    sql: str
    born: int
    died: int | None


def find_life(catalog: Catalog, subscriptions: Path, id: str, at: int | None) -> Life:
    """The life of the subscription at the sequence number, or its last one."""
    with open_input(subscriptions) as source:
        found = [Life(id, *life) for life in lives(catalog, read_lines(source), id)]
    if not found:
        raise UsageError(f"there is no subscription {id!r} in {subscriptions}")
    begun = [life for life in found if at is None or life.born <= at]
    if not begun:
        raise UsageError(f"subscription {id!r} does not exist before seq {found[0].born}")
    return begun[-1]


class _Watch:
    """Observes rows, and passes their changes on to a trace, up to a sequence number."""

    def __init__(self, replica: Replica, trace: Trace | None, end: int) -> None:
        self._replica = replica
        self._trace = trace
        self._end = end
        self.is_over = False

    def evaluates(self, form_key: str) -> bool:
        return False

    def moved(self, points: PointBatch, slots: I64) -> None:
        raise AssertionError("nobody subscribes to the rows that are watched")

    def told(self, batch: Batch, told: Sequence[tuple[str, Told]]) -> None:
        assert batch.events is not None
        for table in self._replica.catalog.tables:
            changes = changes_of(self._replica.store, table, batch.events)
            count = int(np.searchsorted(changes.seq, self._end, "right"))
            self.is_over |= count < len(changes)
            if self._trace is not None and count:
                self._trace.change(changes.slice(0, count))


def follow(catalog: Catalog, life: Life, changes: Path, at: int | None) -> list[tuple[str, str]]:
    """Replays the changes for this subscription alone; gives (label, text) of where it stands."""
    statement = Compiler(catalog).compile(life.sql)
    family = classify(statement, catalog)
    trace = None
    if isinstance(family, Tracing):
        trace = family.trace(statement.shape, statement.constants, catalog, life.born)
    end = min(SEQ_MAX if at is None else at, SEQ_MAX if life.died is None else life.died)
    engine, rows = Engine(catalog), Replica(catalog)
    watch = _Watch(rows, trace, end)
    rows.observe(watch)
    engine.door.create(life.id, life.sql, life.born)
    told: list[int] = []
    with open_input(changes) as source, progress() as display:
        task = display.add_task("bytes of changes", total=changes.stat().st_size or None)
        lines = read_lines(source)
        while not watch.is_over and (chunk := list(islice(lines, _BATCH))):
            rows.apply(chunk, 0)
            told.extend(engine.feed(chunk).notifications.seq.tolist())
            display.update(task, completed=source.tell() if source.seekable() else None)
    told.extend(engine.finish().notifications.seq.tolist())
    heard = [seq for seq in told if seq <= end]
    exists = f"after seq {life.born:,}" + ("" if life.died is None else f", until seq {life.died:,}")
    count = "1 notification" if len(heard) == 1 else f"{len(heard):,} notifications"
    last = f"{count}, the last at seq {heard[-1]:,}" if heard else "nothing yet"
    return [("exists", exists), ("was told", last), *([] if trace is None else trace.lines())]
