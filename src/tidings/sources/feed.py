"""A source, read micro-batch by micro-batch."""

from __future__ import annotations

from typing import Any

from tidings.pipeline.stream_lines import Run, blocks_of, runs_of
from tidings.sources import Offset, Source


class Feed:
    """A source, read micro-batch by micro-batch. Of what lies between two of its offsets, a part may be taken at a time.

    `place` says how far: the lines up to number `taken` of those between `start` and `end`.
    """

    def __init__(self, source: Source, place: dict[str, Any] | None, lines_max: int | None) -> None:
        self._source = source
        self._lines_max = lines_max
        if place is None:
            first = source.first()
            place = {"start": first, "end": first, "taken": 0}
        self._start: Offset = place["start"]
        self._end: Offset = place["end"]
        self._taken: int = place["taken"]
        self._waiting: list[tuple[str, Run]] = []
        if self._taken:
            self._read()
            self._take(self._taken)

    @property
    def place(self) -> dict[str, Any]:
        if not self._waiting:
            return {"start": self._end, "end": self._end, "taken": 0}
        return {"start": self._start, "end": self._end, "taken": self._taken}

    def stop_at_present(self) -> None:
        self._source.stop_at_present()

    def next(self) -> list[bytes] | None:
        """Blocks of the next lines, which may be none; None if there is nothing new."""
        if not self._waiting:
            latest = self._source.latest(self._end)
            if latest == self._end:
                return None
            self._start, self._end, self._taken = self._end, latest, 0
            self._read()
        if self._lines_max is None:
            taken, self._waiting = self._waiting, []
        else:
            taken = self._take(self._lines_max)
            self._taken += sum(len(run.texts) for _, run in taken)
        return blocks_of(taken)

    def _read(self) -> None:
        self._waiting = runs_of(self._source.records(self._start, self._end))

    def _take(self, lines: int) -> list[tuple[str, Run]]:
        """Takes so many lines off those that wait."""
        taken: list[tuple[str, Run]] = []
        at = 0
        while lines and at < len(self._waiting):
            partition, run = self._waiting[at]
            if len(run.texts) > lines:
                run, rest = run.split(lines)
                self._waiting[at] = (partition, rest)
            else:
                at += 1
            taken.append((partition, run))
            lines -= len(run.texts)
        del self._waiting[:at]
        return taken

    def commit(self) -> None:
        """Lets the source give up what has been taken, if that is all of it."""
        if not self._waiting:
            self._source.commit(self._end)
