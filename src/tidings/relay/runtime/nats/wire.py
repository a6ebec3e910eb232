"""What processes of a relay say to each other.

    relay.<run>.feed.<view>     publisher to view: a ViewMessage
    relay.<run>.view.<view>     view to views, and to its subscriber: a ViewMessage

Views have numbers here, as their ids may be anything. Rows are made where they are read: they are many more than the matches
they are made of.
"""

from __future__ import annotations

import msgspec


class Step(msgspec.Struct, frozen=True, array_like=True):
    """A recipe of a view, from a document on. query: None where the view is absent. sources: what the inputs ask for."""

    first: int
    epoch: int
    query: tuple[str, str] | None
    inputs: list[str]
    sources: list[tuple[str, str]]


class Hosted(msgspec.Struct, frozen=True, array_like=True):
    """A view that a worker is to host. next: the first document of which it has not had its say."""

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
