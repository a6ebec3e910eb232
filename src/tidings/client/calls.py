"""Requests to the service as values: what to send, and how to read the answer. `Client` and `AsyncClient` carry them out."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar
from urllib.parse import quote

import msgspec

from tidings.client.errors import ServiceError
from tidings.client.records import requests_of
from tidings.model.errors import UsageError
from tidings.model.record_text import line_of, plain

T = TypeVar("T")
Json = dict[str, Any]
Answers = list[Json]
Params = Mapping[str, object] | Sequence[object] | None
_NDJSON = "application/x-ndjson"
_IDLE_SECONDS = 3600.0
_TARGET_ACTIONS = ("rotate", "test", "resume")


class CurrentAnswer(msgspec.Struct, frozen=True):
    """The rows of a subscription. position: go on from here with `subscribe(id, after=position)`, or `changes`."""

    position: str
    seq: int
    rows: list[Json]


class Feedback(msgspec.Struct, frozen=True):
    """What became of records. refused: (place among the records, from 0 on; reason).

    seq, position: everything up to there includes these records; None if the service has only stored them yet (Spark).
    """

    accepted: int
    refused: list[tuple[int, str]]
    seq: int | None = None
    position: str | None = None


@dataclass(frozen=True)
class Call(Generic[T]):
    """A request. read: makes the result of the body."""

    method: str
    path: str
    read: Callable[[bytes], T]
    query: tuple[tuple[str, str], ...] = ()
    body: bytes | None = None
    headers: dict[str, str] = field(default_factory=dict)
    wait_seconds: float = 0.0
    """How long the service may take on purpose, before it begins to answer."""


def _json(body: bytes) -> Json:
    try:
        found = msgspec.json.decode(body, type=dict[str, Any])
    except msgspec.DecodeError as error:
        raise ServiceError(200, "unknown", "the answer is not of the contract", detail=str(error)) from None
    return found


def ask(method: str, path: str, body: Mapping[str, object] | None = None, **query: object) -> Call[Json]:
    """A request with JSON both ways; parts of body and query that are None are left out."""
    asked = tuple((name, _shown(value)) for name, value in query.items() if value is not None)
    if body is None:
        return Call(method, path, _json, asked)
    given = {name: plain(value, name) for name, value in body.items() if value is not None}
    return Call(method, path, _json, asked, msgspec.json.encode(given), {"content-type": "application/json"})


def _shown(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def path_of(id: str, *, kind: str = "subscriptions", end: str = "") -> str:
    """The path of a subscription or a target."""
    if not id:
        raise UsageError("an id is not empty")
    return f"/v1/{kind}/{quote(id, safe='')}{end}"


# Subscriptions


def create(sql: str, id: str | None, params: Params, settings: Mapping[str, object]) -> Call[Json]:
    return ask("POST", "/v1/subscriptions", {"id": id, "sql": sql, "params": params, **settings})


def edit(id: str, sql: str, params: Params, version: int | None, settings: Mapping[str, object]) -> Call[Json]:
    call = ask("PUT", path_of(id), {"sql": sql, "params": params, **settings})
    if version is not None:
        call.headers["if-match"] = f'"{version}"'
    return call


def bulk(lines: Iterable[Mapping[str, object]]) -> Iterator[Call[list[Json]]]:
    """One request after another; answers have the number of the line among all, from 1 on."""
    before = 0
    for group in requests_of(map(line_of, lines)):
        body, start = b"\n".join(group) + b"\n", before

        def read(body: bytes, start: int = start) -> list[Json]:
            answers = [_json(line) for line in body.splitlines() if line.strip()]
            return [{**answer, "line": start + answer["line"]} if "line" in answer else answer for answer in answers]

        yield Call("POST", "/v1/bulk", read, body=body, headers={"content-type": _NDJSON}, wait_seconds=300)
        before += len(group)


def check_one_query(more_ids: Sequence[str], after: str | None) -> None:
    """A query that is followed is alone and new."""
    if more_ids:
        raise UsageError("one query at a time: create several first, then subscribe to their ids")
    if after is not None:
        raise UsageError("a position belongs to a subscription that exists: subscribe to its id")


def idle_seconds(id: str | None) -> float | None:
    """When a followed query goes that nobody follows: one without an id has no other use, and its follower may have died."""
    return _IDLE_SECONDS if id is None else None


def rows(id: str) -> Call[CurrentAnswer]:
    return Call("GET", path_of(id, end="/rows"), msgspec.json.Decoder(CurrentAnswer).decode)


def changes(id: str, after: str | None, wait_seconds: float, limit: int | None) -> Call[Json]:
    call = ask("GET", path_of(id, end="/changes"), None, after=after, limit=limit, wait_seconds=f"{wait_seconds:g}")
    return Call(call.method, call.path, call.read, call.query, wait_seconds=wait_seconds)


# Changes of rows


def feed(lines: Iterable[bytes], producer: str | None) -> Iterator[Call[Feedback]]:
    """One request after another, each with whole transactions."""
    query = () if producer is None else (("producer", producer),)
    before = 0
    for group in requests_of(lines):

        def read(body: bytes, start: int = before) -> Feedback:
            said = _json(body)
            refused = [(start + entry["line"] - 1, str(entry["reason"])) for entry in said.get("refused", [])]
            accepted = said["accepted"] if "accepted" in said else said.get("stored", 0)
            return Feedback(accepted, refused, said.get("seq"), said.get("position"))

        body = b"\n".join(group) + b"\n"
        yield Call("POST", "/v1/changes", read, query, body, {"content-type": _NDJSON}, wait_seconds=60)
        before += len(group)


def together(found: Sequence[Feedback]) -> Feedback:
    """What became of the records of several requests."""
    refused = [entry for each in found for entry in each.refused]
    last = found[-1] if found else None
    accepted = sum(each.accepted for each in found)
    return Feedback(accepted, refused) if last is None else Feedback(accepted, refused, last.seq, last.position)


def unrefused(found: Feedback) -> Feedback:
    """RefusedError if a record was refused."""
    if found.refused:
        from tidings.embedded import RefusedError

        raise RefusedError([reason for _, reason in found.refused])
    return found


# Webhook targets


def target_action(id: str, action: str) -> Call[Json]:
    if action not in _TARGET_ACTIONS:
        raise UsageError(f"{action!r} is not one of {', '.join(_TARGET_ACTIONS)}")
    return ask("POST", path_of(id, kind="targets", end=f"/{action}"))
