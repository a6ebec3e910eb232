"""What processes of a relay say to each other.

    relay.<run>.feed.<view>     publisher to view: a ViewMessage
    relay.<run>.view.<view>     view to views: a ViewMessage
    relay.<run>.told.<view>     view to subscriber: Told

Views have numbers here, as their ids may be anything. What is stored has an id, so that it is stored once if it is sent twice;
receivers know as well what they have.
"""

from __future__ import annotations

import msgspec

from tidings.relay.errors import RowsError
from tidings.relay.runtime import ledger


class Told(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What a subscriber is told of a document. host: by which command the view is hosted. refused: why there are no rows."""

    host: int
    seq: int
    view: str
    rows: list[tuple[str, ...]] = []
    refused: str | None = None

    @staticmethod
    def of(host: int, seq: int, view: str, told: ledger.Told) -> Told:
        if isinstance(told, RowsError):
            return Told(host, seq, view, refused=str(told))
        return Told(host, seq, view, told)

    @property
    def told(self) -> ledger.Told:
        return self.rows if self.refused is None else RowsError(self.refused)


class Step(msgspec.Struct, frozen=True, array_like=True):
    """A recipe of a view, from a document on. query: None where the view is absent. sources: what the inputs ask for."""

    first: int
    epoch: int
    query: tuple[str, str] | None
    inputs: list[str]
    sources: list[tuple[str, str]]


class Hosted(msgspec.Struct, frozen=True, array_like=True):
    """A view that a worker is to host. next: the first document of which its subscriber has not been told."""

    view: str
    number: int
    next: int
    steps: list[Step]


class Host(msgspec.Struct, frozen=True, array_like=True):
    """To a worker: host just these views.

    number: of the command. start: where in the stream the messages of unfinished documents begin. numbers: of the inputs.
    """

    number: int
    start: int
    hosted: list[Hosted]
    numbers: dict[str, int]


class Setup(msgspec.Struct, frozen=True, array_like=True):
    """To a worker, first."""

    url: str
    stream: str


def subject(stream: str, kind: str, number: int | str) -> str:
    return f"{all_subjects(stream)[:-1]}{kind}.{number}"


def all_subjects(stream: str) -> str:
    return f"relay.{stream}.>"
