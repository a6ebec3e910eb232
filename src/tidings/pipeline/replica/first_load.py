"""The first load of a source: which records are rows that were there before the first change, and when they are complete.

Rows of a first load have op `r` and stand before the first other record of their partition. Nobody is told of them; whoever
came before they were complete gets a snapshot then.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from tidings.kernels.rows import I64
from tidings.kernels.rows.change import SEQ
from tidings.pipeline.ingest import LOAD_END, LOADING
from tidings.pipeline.replica.batch import Batch

FILE = -1
"""Instead of a partition, where all lines are of one file."""


class FirstLoad:
    """Where each partition stands. Partitions are known by numbers."""

    def __init__(self) -> None:
        self._begun: set[int] = set()
        """Those that have had another record."""
        self._loading: set[int] = set()
        """Those in the middle of their load."""

    @property
    def is_over(self) -> bool:
        """Whether that of a file is."""
        return FILE in self._begun

    @property
    def is_open(self) -> bool:
        """Whether rows are still to come: nobody should be shown them yet."""
        return bool(self._loading)

    def note(self, batch: Batch, loads: Mapping[int, int], *, is_file: bool) -> None:
        """Finds the rows of the load among the admitted records of a batch, and sets `batch.loaded`.

        loads: line -> LOADED, LOADING or LOAD_END. The load of a file ends with the first other record; of a stream also with
        a mark, and with a micro-batch whose last row of it does not say that there are more.
        """
        lines = np.arange(batch.numbers.shape[1]) if batch.at is None else batch.at
        partition = np.full(len(lines), FILE) if is_file else batch.partition
        numbers = set(np.unique(partition).tolist())
        if not loads:
            self._begun |= numbers
        else:
            is_row = np.isin(lines, [line for line, load in loads.items() if load != LOAD_END])
            for number in numbers - self._begun:
                own = np.flatnonzero(partition == number)
                others = np.flatnonzero(~is_row[own])
                self._take(batch, number, own[: others[0]] if len(others) else own)
                if len(others):
                    self._begun.add(number)
                elif is_file or loads[int(lines[own[-1]])] == LOADING:
                    self._loading.add(number)
        if not is_file and (LOAD_END in loads.values() or LOADING not in loads.values()):
            self._loading.clear()
        self._loading -= self._begun

    def _take(self, batch: Batch, number: int, rows: I64) -> None:
        self._loading.discard(number)
        if len(rows):
            batch.loaded = max(batch.loaded, int(batch.numbers[SEQ, rows].max()))

    def dump(self, names: Mapping[int, str]) -> list[list[str]]:
        """For `load`. names: of the partitions, by number."""
        return [sorted(names.get(number, "") for number in some) for some in (self._begun, self._loading)]

    def load(self, state: list[list[str]] | None, numbers: Mapping[str, int]) -> None:
        """Restores a dump. numbers: of the partitions, by name. None: a dump of a version that knew no loads."""
        begun, loading = ([*numbers, ""], []) if state is None else state
        self._begun = {numbers.get(name, FILE) for name in begun}
        self._loading = {numbers.get(name, FILE) for name in loading}
