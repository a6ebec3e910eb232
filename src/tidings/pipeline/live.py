"""A live engine: lines of sources in, finished notifications and answers out, one micro-batch at a time.

`Live` is a replica together with the registrar of its subscriptions. It does no input or output of its own: Spark's workers
host it, and so does the inline engine (`tidings.live`). Both keep what they feed it in a log; from a dump and the log behind
it, another `Live` gets to the same state, and tells the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import msgspec
import numpy as np

from tidings.kernels.rows import I64
from tidings.model.blob import pack, pieces, unpack
from tidings.model.catalog import Catalog
from tidings.model.change import NO_TIME
from tidings.model.errors import UsageError
from tidings.model.notification import NotificationBatch
from tidings.model.points import PointBatch
from tidings.model.quarantine import Quarantined, raw_text
from tidings.pipeline.edge.centre import Centre
from tidings.pipeline.edge.dispatch import PlaceOptions
from tidings.pipeline.edge.place_tree import PlaceTree
from tidings.pipeline.edge.wire import Parcel
from tidings.pipeline.registrar import Answer, Registrar
from tidings.pipeline.replica.batch import Applied, Origin, Places
from tidings.pipeline.replica.replica import Replica
from tidings.pipeline.stream_lines import StreamLines

NOTIFICATIONS, ANSWERS, REFUSED, WARNINGS = "notifications", "answers", "refused", "warnings"
"""Kinds of output."""
WITH_GATEWAYS = (
    "the checkpoint is of a job with gateways (a sink places:): go on with one, or begin with a new checkpoint"
)
WITHOUT_GATEWAYS = "the checkpoint is of a job without gateways: a sink places: needs a new checkpoint"
_NO_PLACE = "the record does not say where it stands in its partition: its offset or order is null"
_NOTES_MAX = 20
_WARNINGS_MAX = 100
"""Of one micro-batch. What is warned of is counted as well, all of it."""


class Input(NamedTuple):
    """A micro-batch as a replica takes it."""

    lines: list[bytes]
    origin: Origin
    points: list[PointBatch]
    is_end: bool = False
    answers: Sequence[Answer] = ()
    """To the subscription events from which the points were made."""
    times: I64 = np.empty(0, np.int64)
    """[lines] of a stream: when each change was made, in microseconds, or NO_TIME."""
    refused: Sequence[Quarantined] = ()
    """Records of a stream that have no place in their partition."""


class Output(NamedTuple):
    """What came of a micro-batch."""

    told: NotificationBatch
    answers: list[Answer]
    refused: list[Quarantined]
    warnings: list[bytes]
    """Lines about records that were accepted."""
    shared_keys: int
    """Changes of rows that came by another partition before."""
    times: I64
    """[changes]: when each accepted change was made, in microseconds, or NO_TIME."""
    parcels: Sequence[Parcel] = ()
    """What gateways and brokers are sent, in jobs that have some; nobody else is told then."""

    def reports(self) -> dict[str, bytes]:
        """Answers, refused records and warnings as lines, by kind; kinds of which there are none are left out."""
        found = {
            ANSWERS: [msgspec.json.encode(answer) for answer in self.answers],
            REFUSED: [entry.line().encode() for entry in self.refused],
            WARNINGS: self.warnings,
        }
        return {kind: b"\n".join([*lines, b""]) for kind, lines in found.items() if lines}


def _everything(*_: object) -> bool:
    return True


class Live:
    """A replica and a registrar.

    is_own: whether a subscription, given by id and place, is told by this one, where there are several. reports: whether this
    one reports what is wrong with a record, which all of them see. places: the job has gateways, which are told instead.
    """

    def __init__(
        self,
        catalog: Catalog,
        *,
        by_commit: bool = True,
        is_stream: bool = True,
        is_own: Callable[[str, str], bool] = _everything,
        reports: Callable[[int], bool] = _everything,
        places: PlaceOptions | None = None,
    ) -> None:
        tree = None if places is None else PlaceTree(places.names)
        self._registrar = Registrar(catalog, is_own, reports, tree)
        self._centre: Centre | None = None
        if places is None or tree is None:
            self.replica = Replica(catalog, keeps_points=True, is_stream=is_stream, by_commit=by_commit)
        else:
            self._centre = Centre(catalog, places, tree, self._registrar, is_own, by_commit=by_commit)
            self.replica = self._centre.replica
        self._reports = reports
        self.needs_base = False
        """Whether the log does not suffice to get here again, and a dump is needed, which clears this."""

    @property
    def nbytes(self) -> int:
        return self.replica.nbytes + self._registrar.nbytes

    def dump(self) -> bytes:
        self.needs_base = False
        # In pieces: a single value of a message may have 4 GiB at most.
        state = {"known": pieces(self._registrar.dump())}
        if self._centre is None:
            state["replica"] = pieces(self.replica.dump())
        else:
            state["centre"] = pieces(self._centre.dump())
        return pack(state)

    def load(self, blob: bytes) -> None:
        state = unpack(blob)
        if ("centre" in state) != (self._centre is not None):
            raise UsageError(WITH_GATEWAYS if "centre" in state else WITHOUT_GATEWAYS)
        if state["known"]:
            self._registrar.load(b"".join(state["known"]))
        if self._centre is None:
            self.replica.load(b"".join(state["replica"]))
        else:
            self._centre.load(b"".join(state["centre"]))

    def load_rows(self, lines: Sequence[bytes], position: int) -> list[Quarantined]:
        """Takes rows that are there before the first micro-batch. They may be others the next time, so a dump is needed."""
        self.needs_base = True
        return [entry for entry in self.replica.load_rows(lines, position) if self._reports(entry.position)]

    def read(self, changes: Iterable[bytes], events: Iterable[bytes]) -> Input:
        """Reads blocks of lines (`stream_lines`). Subscription events enter the registry: called once for each micro-batch."""
        (lines, lost), (wishes, unheard) = StreamLines.split(changes), StreamLines.split(events)
        points, answers = self._register(wishes.located()) if wishes.lines else ([], [])
        answers += [
            Answer(partition, offset, refused=_NO_PLACE)
            for partition, offset, _ in unheard.located()
            if self._reports(offset)
        ]
        refused = [
            Quarantined("changes", offset, None, _NO_PLACE, raw_text(line), partition)
            for partition, offset, line in lost.located()
        ]
        return Input(lines.lines, lines.places, points, answers=answers, times=lines.times, refused=refused)

    def take(self, lines: list[bytes], events: list[bytes]) -> Input:
        """As `read`, of lines that come one after the other by one partition, and are numbered from 0 on."""
        located = (("", number, event) for number, event in enumerate(events))
        points, answers = self._register(located) if events else ([], [])
        zeros = np.zeros(len(lines), np.int64)
        places = Places([""], zeros, [""], zeros, np.arange(len(lines)))
        return Input(lines, places, points, answers=answers)

    def _register(self, located: Iterable[tuple[str, int, bytes]]) -> tuple[list[PointBatch], list[Answer]]:
        """Subscription events have a seq of their own, so that a subscription never begins twice at one."""
        self.replica.advance()
        return self._registrar.handle(located, self.replica.passed)

    def apply(self, taken: Input) -> Output:
        parcels: Sequence[Parcel] = ()
        if self._centre is None:
            found = self.replica.apply(taken.lines, taken.origin, taken.points, is_end=taken.is_end)
        else:
            found, parcels = self._centre.apply(taken.lines, taken.origin, taken.points, taken.answers)
        seqs, times = _seq_times(found, taken.times)
        if len(found.notifications) and len(seqs):
            found.notifications.tail_time = _tail_times(found.notifications, seqs, times)
        return Output(
            found.notifications,
            [*taken.answers, *self._expelled(found)],
            [entry for entry in (*taken.refused, *found.refused) if self._reports(entry.position)],
            list(self._warnings(found)),
            len(found.batch.shared),
            times,
            parcels,
        )

    def replay(self, taken: Input) -> None:
        """Repeats a micro-batch, of which everybody has been told."""
        if self._centre is None:
            self._expelled(self.replica.replay(taken.lines, taken.origin, taken.points, is_end=taken.is_end))
        else:
            self._expelled(self._centre.apply(taken.lines, taken.origin, taken.points, taken.answers)[0])

    def _expelled(self, found: Applied) -> list[Answer]:
        """Answers to those whose subscriptions could not be evaluated, and who are registered no more."""
        for id, _ in found.failed:
            # Where state is restored from the log not all is evaluated: it might not fail again.
            self.needs_base = True
            self._registrar.expel(id)
        return [Answer("", 0, id, "create", refused=f"dropped: {reason}") for id, reason in found.failed]

    def _warnings(self, found: Applied) -> Iterator[bytes]:
        """Lines about rows that come by several partitions, between which there is no order but that of micro-batches."""
        own = [(line, other) for line, other in found.batch.shared if self._reports(line)]
        for line, other in own[:_WARNINGS_MAX]:
            partition, offset = found.batch.place(line)
            reason = (
                f"the row came by partition {other!r} before: between partitions the order is that in which micro-batches "
                "take records in; send all changes of a row to one partition"
            )
            raw = found.batch.lines[line]
            yield Quarantined("changes", offset, None, reason, raw_text(raw), partition).line().encode()


def notes_of(answers: Sequence[Answer]) -> list[str]:
    """Refused subscription events as lines for a log."""
    refused = [answer for answer in answers if answer.refused is not None]
    lines = [
        f"subscription {answer.id!r} refused: {answer.refused}"
        if answer.id is not None
        else f"subscription event {answer.offset} of {answer.partition!r} refused: {answer.refused}"
        for answer in refused[:_NOTES_MAX]
    ]
    if len(refused) > _NOTES_MAX:
        lines.append(f"{len(refused) - _NOTES_MAX:,} more subscription events refused: see the answers in the sink")
    return [line.replace("\n", " ") for line in lines]


def _seq_times(found: Applied, times: I64) -> tuple[I64, I64]:
    """(seqs, times) of the accepted changes of a stream."""
    if not len(times):
        return times, times
    seqs, lines = found.batch.numbered()
    return seqs, times[lines]


def _tail_times(told: NotificationBatch, seqs: I64, times: I64) -> I64:
    """When the change of each tail was made; a snapshot has no time. seqs, times: of the changes, by seq."""
    at = np.minimum(np.searchsorted(seqs, told.tail_seq), len(seqs) - 1)
    return np.where((seqs[at] == told.tail_seq) & ~told.tail_is_snapshot, times[at], NO_TIME)
