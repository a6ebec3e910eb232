"""A gateway or broker whose state is in a folder: a base, from which it gets by the parcels behind it to where it was."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from tidings.edge import Arrived, ParcelReader, Position
from tidings.files import write_bytes
from tidings.model.errors import UsageError
from tidings.pipeline.edge.gateway import Gateway, Taken
from tidings.pipeline.edge.wire import Kind, Parcel, decode

_STATE = "base"
_FORMAT = 1
_BYTES_MIN = 4 * 2**20
_LONG = 4
"""Parcels that outweigh the base so many times are folded at once; else when there is nothing else to do."""
_ASK_SECONDS, _ASK_SECONDS_MAX = 2.0, 60.0
"""A base that does not come is asked for again after so long, and longer."""
_SECONDS_MAX = 60.0
"""What has come is folded after so long, so that parcels need not be kept for ever."""


class _Head(msgspec.Struct):
    format: int
    place: str
    position: Position | None


class DurableGateway:
    """Parcels are read one by one: `take`, then `settle` when what came of it is where it belongs."""

    def __init__(
        self, folder: Path, place: str, before_fold: Callable[[], object], gateway: Gateway | None = None
    ) -> None:
        """UsageError if the folder is of another place. before_fold: called before a new base replaces the one before.

        gateway: a new one, of whatever kind.
        """
        self._path = folder / _STATE
        self._place = place
        self._before_fold = before_fold
        self.gateway = gateway or Gateway()
        self.position: Position | None = None
        """Behind the last parcel that was taken."""
        self._base_bytes = self._bytes = 0
        self._is_new = False
        """Whether there was a base that is in no state on disk: to look for it again would take long."""
        self._folded_at = time.monotonic()
        self._asked_at, self._ask_seconds = 0.0, _ASK_SECONDS
        folder.mkdir(parents=True, exist_ok=True)
        if self._path.exists():
            self._load(self._path.read_bytes())

    def _load(self, state: bytes) -> None:
        head_text, _, dump = state.partition(b"\n")
        try:
            head = msgspec.json.decode(head_text, type=_Head)
        except msgspec.MsgspecError:
            raise UsageError(f"{self._path} is damaged: delete the folder, and everything is asked for") from None
        if head.format != _FORMAT:
            raise UsageError(f"{self._path} is of another version of Tidings: delete the folder, and begin anew")
        if head.place != self._place:
            raise UsageError(f"the folder {self._path.parent} is of the place {head.place!r}, not {self._place!r}")
        self.position, self._base_bytes = head.position, len(state)
        self.gateway.load(dump)

    def seek(self, reader: ParcelReader) -> None:
        """Begins with the newest base that there is, if this gateway has nothing: what was before is over."""
        if self.position is not None:
            return
        at: Position | None = None
        while arrived := reader.read(at, 0.0 if at else 1.0):
            for each in arrived:
                if decode(each.data).kind is Kind.BASE:
                    self.position = at
                at = each.position

    def take(self, arrived: Arrived, told: int) -> tuple[Parcel, Taken | None]:
        """What comes of a parcel. told: subscribers have been told of micro-batches up to this one."""
        parcel = decode(arrived.data)
        if self.gateway.run not in ("", parcel.run):
            raise UsageError(
                f"the feed of the place {self._place!r} is of another job than before (one with another checkpoint): name a "
                "new --data folder"
            )
        taken = self.gateway.take(parcel, is_told=parcel.batch > told)
        self.position = arrived.position
        self._bytes += len(arrived.data)
        if taken is not None:
            self._is_new |= taken.is_whole
            self._asked_at, self._ask_seconds = 0.0, _ASK_SECONDS
        return parcel, taken

    def ask_for_base(self, reader: ParcelReader, on_step: Callable[[str], object]) -> None:
        """Asks the job for everything, again and again until it comes. on_step: called with what there is to say of it."""
        now = time.monotonic()
        if now - self._asked_at < self._ask_seconds:
            return
        if self._asked_at:
            self._ask_seconds = min(2 * self._ask_seconds, _ASK_SECONDS_MAX)
            on_step(f"still waiting: is the job running, and is {self._place!r} one of the places of its sink?")
        self._asked_at = now
        try:
            reader.ask([msgspec.json.encode({"place": self._place, "resync": True})])
        except UsageError as error:
            on_step(f"asking for the state of the place: {error}")

    def settle(self, *, is_idle: bool) -> None:
        """Writes a new base, if it is time for one."""
        weight = self._bytes / max(_BYTES_MIN, self._base_bytes)
        is_old = self._bytes > 0 and time.monotonic() - self._folded_at > _SECONDS_MAX
        if self._is_new or weight > _LONG or (is_idle and (weight > 1 or is_old)):
            self.fold()

    def fold(self) -> None:
        self._before_fold()
        head = msgspec.json.encode(_Head(_FORMAT, self._place, self.position))
        dump = self.gateway.dump()
        write_bytes(self._path, [head, b"\n", dump])
        self._base_bytes, self._bytes, self._is_new, self._folded_at = len(dump), 0, False, time.monotonic()
