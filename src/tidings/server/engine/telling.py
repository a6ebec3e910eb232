"""Output of an engine into the notice log and the quarantine, whichever engine it is."""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from pathlib import Path

from tidings.model.errors import RunError
from tidings.model.notification import NotificationBatch
from tidings.model.quarantine import Quarantined
from tidings.pipeline.registrar import Answer
from tidings.server.engine.connection import Sender
from tidings.server.engine.frames import Done, Mirrored, Result, Settings, Stalled
from tidings.server.engine.quarantine import QUARANTINE, Quarantine, QuarantineFile
from tidings.server.log.writer import LogWriter

RETAIN_SECONDS = 10.0
_SEGMENT_BYTES, _SEGMENT_BYTES_MIN = 64 * 2**20, 2**16
STALLED_SECONDS = 0.25
"""So long a full disk is left alone before it is tried again."""


class Teller:
    """The notice log and the quarantine of a service."""

    def __init__(self, settings: Settings, send: Sender) -> None:
        data = Path(settings.data)
        self._settings = settings
        self._send = send
        # Whole segments are removed, so a small log needs small ones.
        segment_bytes = max(_SEGMENT_BYTES_MIN, min(_SEGMENT_BYTES, settings.retain_bytes // 8))
        self._log = LogWriter(data / "log", segment_bytes=segment_bytes)
        self._quarantine = QuarantineFile(data / QUARANTINE)
        self._retained = 0.0

    @property
    def batch(self) -> int:
        """The last micro-batch in the log, from 1 on; 0: there is none."""
        return self._log.batch

    @property
    def passed(self) -> int:
        return self._log.passed

    def tell(
        self,
        batch: int,
        passed: int,
        told: NotificationBatch,
        ended: Sequence[tuple[str, int]],
        refused: Iterable[Quarantined] = (),
    ) -> None:
        """Puts a micro-batch into the log, when there is room: it is kept elsewhere already, so it will be told.

        ended: (engine id, seq) of subscriptions that are there no more.
        """
        now = time.time_ns() // 1000
        records = [
            Quarantine(batch, entry.seq, entry.reason, entry.raw, entry.partition or entry.source, now)
            for entry in refused
        ]
        while True:
            try:
                self._quarantine.add(records)
                self._log.append(batch, passed, now, told, ended)
                return
            except RunError as error:
                self._send(Stalled(str(error)))
                time.sleep(STALLED_SECONDS)

    def done(
        self,
        results: list[Result],
        counts: dict[str, int],
        seconds: float,
        expelled: list[tuple[str, str]],
        mirrored: Mirrored | None = None,
    ) -> Done:
        """The report of a micro-batch that is in the log."""
        return Done(self._log.end, self._log.batch, self._log.passed, results, counts, seconds, expelled, mirrored)

    def retain(self) -> None:
        """Lets go of what is old, from time to time."""
        now = time.monotonic()
        if now - self._retained >= RETAIN_SECONDS:
            self._retained = now
            self._log.retain(self._settings.retain_seconds, self._settings.retain_bytes, time.time_ns() // 1000)

    def sync(self) -> None:
        self._log.sync()

    def close(self) -> None:
        self._log.close()
        self._quarantine.close()


def answers_by_place(answers: Sequence[Answer]) -> dict[str, list[tuple[int | None, str]]]:
    """(seq, or None if refused; the reason) of events, in their order, by the name of the place they came from."""
    found: dict[str, list[tuple[int | None, str]]] = {}
    for answer in answers:
        name = answer.partition.rpartition(":")[2]
        found.setdefault(name, []).append((answer.seq if answer.refused is None else None, answer.refused or ""))
    return found


def ended_by(answers: Iterable[Answer], passed: int) -> list[tuple[str, int]]:
    """(engine id, seq) of the subscriptions that answers say are there no more."""
    return [
        (answer.id, passed if answer.seq is None else answer.seq)
        for answer in answers
        if answer.id and (_is_expelled(answer) or (answer.event == "drop" and answer.refused is None))
    ]


def expelled(answers: Iterable[Answer]) -> list[tuple[str, str]]:
    """(engine id, reason) of subscriptions that could not be evaluated, and are there no more."""
    return [(answer.id, answer.refused or "") for answer in answers if answer.id and _is_expelled(answer)]


def _is_expelled(answer: Answer) -> bool:
    return answer.partition == "" and answer.refused is not None
