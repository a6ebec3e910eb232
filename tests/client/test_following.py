"""A followed stream: connections that break anywhere, and services that repeat themselves, change nothing that is given out.

`Service` is the definition: a log of what happened, and what a client that resumes behind a position is sent.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.client.errors import NotFound, PositionExpired, ServiceError, Unreachable
from tidings.client.following import Following, Told
from tidings.client.reconnect import SECONDS_MAX, Attempts
from tidings.client.sse import EventParser, ServerEvent

IDS = ("a", "b", "c")


@dataclass
class Service:
    """seq by seq, what each subscription is told: a number that is added to its sum, or an edit, which sets it anew."""

    log: list[dict[str, tuple[str, int]]]
    parts: int = 1
    epoch: str = "k7"
    sums: list[dict[str, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        now = dict.fromkeys(IDS, 0)
        self.sums = [dict(now)]
        for moment in self.log:
            for id, (kind, number) in moment.items():
                now[id] = number if kind == "edit" else now[id] + number
            self.sums.append(dict(now))

    def sent(self, position: str | None, upto: int, net: bool) -> bytes:
        """The bytes of a connection that is opened when `upto` moments have passed."""
        after = None if position is None else int(position.rpartition("-")[2])
        if after is None:
            events = [event for id in IDS for event in self._snapshot(id, upto)]
            events[-1] += f"id: {self.epoch}-{upto}\n"
        elif net:
            events = []
            for id in IDS:
                told = [moment[id] for moment in self.log[after:upto] if id in moment]
                if any(kind == "edit" for kind, _ in told):
                    events += [self._event("reset", subscription=id, why="edited"), *self._snapshot(id, upto)]
                elif told:
                    events += self._change(id, upto, sum(number for _, number in told), net_from=after)
            events.append(self._event("progress", seq=upto) + f"id: {self.epoch}-{upto}\n")
        else:
            events = []
            for seq, moment in enumerate(self.log[after:upto], after + 1):
                for id, (kind, number) in moment.items():
                    if kind == "edit":
                        events += [self._event("reset", subscription=id, why="edited"), *self._snapshot(id, seq)]
                    else:
                        events += self._change(id, seq, number)
                if moment:
                    events[-1] += f"id: {self.epoch}-{seq}\n"
            events.append(self._event("progress", seq=upto) + f"id: {self.epoch}-{upto}\n")
        return ("retry: 1000\n\n" + "".join(event + "\n" for event in events)).encode()

    def _event(self, name: str, **data: object) -> str:
        return f"event: {name}\ndata: {json.dumps(data)}\n"

    def _snapshot(self, id: str, seq: int) -> Iterator[str]:
        return self._parted("snapshot", id, self.sums[seq][id], seq=seq, snapshot=True)

    def _change(self, id: str, seq: int, number: int, **more: int) -> Iterator[str]:
        return self._parted("change", id, number, seq=seq, snapshot=False, **more)

    def _parted(self, name: str, id: str, number: int, **data: object) -> Iterator[str]:
        numbers = [number] + [0] * (self.parts - 1)
        for part, each in enumerate(numbers):
            place = {} if self.parts == 1 else {"part": part} | ({"more": True} if part + 1 < self.parts else {})
            yield self._event(name, subscription=id, **data, **place, changes=[each])


LOGS = st.lists(
    st.dictionaries(st.sampled_from(IDS), st.tuples(st.sampled_from(["add", "add", "add", "edit"]), st.integers(1, 9))),
    max_size=12,
)
# How much of the log there is when a connection opens, where it is cut, and whether the service sends net changes.
CONNECTIONS = st.lists(st.tuples(st.floats(0, 1), st.floats(0, 1), st.booleans()), max_size=8)


def follow(service: Service, connections: list[tuple[float, float, bool]]) -> tuple[Following, list[Told]]:
    """Connections that are cut, and a last one that is not; more of them as long as the stream asks for one."""
    following = Following(IDS)
    given_out: list[Told] = []
    upto = 0
    for share, cut, net in connections:
        upto += int((len(service.log) - upto) * share)
        text = service.sent(following.position, upto, net)
        _read(following, text[: int(len(text) * cut)], given_out)
    for _ in range(3):
        _read(following, service.sent(following.position, len(service.log), False), given_out)
        if not following.is_torn:
            break
    return following, given_out


def _read(following: Following, text: bytes, given_out: list[Told]) -> None:
    following.opened()
    for event in EventParser().feed(text):
        told = following.take(event)
        if told is not None:
            given_out.append(told)


@given(LOGS, CONNECTIONS, st.integers(1, 3))
def test_whatever_breaks_the_answers_are_right(
    log: list[dict[str, tuple[str, int]]], connections: list[tuple[float, float, bool]], parts: int
) -> None:
    service = Service(log, parts)
    following, given_out = follow(service, connections)
    sums: dict[str, int] = {}
    for told in given_out:
        number = sum(json.loads(line)["changes"][0] for line in told.lines)
        sums[told.subscription] = number if told.snapshot else sums[told.subscription] + number
        assert sums[told.subscription] == service.sums[told.seq][told.subscription], told
    assert sums == service.sums[-1]
    assert not following.is_torn and following.position == f"k7-{len(log)}" and following.passed == len(log)


@given(LOGS, CONNECTIONS, st.integers(1, 3))
def test_every_change_is_given_out_once_and_in_order(
    log: list[dict[str, tuple[str, int]]], connections: list[tuple[float, float, bool]], parts: int
) -> None:
    """Of a service that tells every change, and a client that has got its first snapshots."""
    service = Service(log, parts)
    _, given_out = follow(service, [(0, 1, False), *((share, cut, False) for share, cut, _ in connections)])
    expected = [(seq, id) for seq, moment in enumerate(log, 1) for id in moment]
    assert [(told.seq, told.subscription) for told in given_out] == [(0, id) for id in IDS] + expected
    assert all(len(told.lines) == parts for told in given_out)


@given(LOGS, st.floats(0, 1), st.integers(1, 3))
def test_the_position_of_what_was_given_out_loses_nothing(
    log: list[dict[str, tuple[str, int]]], share: float, parts: int
) -> None:
    """Another client that begins behind the position of any notification gets at least everything that came later."""
    service = Service(log, parts)
    _, given_out = follow(service, [])
    begun = [told for told in given_out if told.position is not None]
    if begun:
        last = begun[int(share * (len(begun) - 1))]
        other = Following(IDS, last.position)
        later: list[Told] = []
        _read(other, service.sent(other.position, len(log), False), later)
        missing = {told[:2] for told in given_out[given_out.index(last) + 1 :]} - {told[:2] for told in later}
        assert missing == set()
    assert len(begun) >= 1


def event(name: str, id: str = "", **data: object) -> ServerEvent:
    return ServerEvent(name, json.dumps(data), id)


def snapshot(seq: int, id: str = "", **more: object) -> ServerEvent:
    return event("snapshot", id, subscription="a", seq=seq, snapshot=True, changes=[], **more)


def change(seq: int, id: str = "", **more: object) -> ServerEvent:
    return event("change", id, subscription="a", seq=seq, snapshot=False, changes=[], **more)


def opened(after: str | None = None) -> Following:
    following = Following(["a"], after)
    following.opened()
    return following


def taken(following: Following, *events: ServerEvent) -> list[int]:
    return [told.seq for each in events if (told := following.take(each)) is not None]


@pytest.mark.parametrize("why", ["new_epoch", "position_expired", "behind"])
def test_behind_a_reset_a_snapshot_counts_whatever_its_seq(why: str) -> None:
    following = opened()
    assert taken(following, snapshot(7, "k7-7"), change(9, "k7-9")) == [7, 9]
    following.opened()
    assert taken(following, event("reset", subscription="a", why=why), snapshot(3, "k8-3"), change(4, "k8-4")) == [3, 4]
    assert following.position == "k8-4"


def test_a_net_change_from_before_what_was_had_asks_for_another_connection() -> None:
    following = opened()
    assert taken(following, snapshot(7, "k7-7"), change(8)) == [7, 8]
    following.opened()
    assert taken(following, change(12, "k7-12", net_from=7), change(13, "k7-13")) == []
    assert following.is_torn and following.position is None
    following.opened()
    assert taken(following, snapshot(13, "k7-13")) == [13]
    assert not following.is_torn


def test_half_a_snapshot_is_forgotten_with_its_connection() -> None:
    following = opened()
    assert taken(following, snapshot(7, part=0, more=True)) == []
    following.opened()
    assert taken(following, snapshot(8, part=0, more=True), snapshot(8, "k7-8", part=1)) == [8]


def test_an_end_ends_only_its_subscription() -> None:
    following = Following(["a", "b"])
    following.opened()
    assert taken(following, snapshot(1), event("end", subscription="b", seq=2, why="dropped"), change(3)) == [1, 3]
    assert following.ended == {"b": "dropped"} and following.query == (("subscription", "a"),)
    following.take(event("end", subscription="a", seq=4, why="revoked"))
    assert following.is_over


def test_events_that_are_not_known_are_passed_over() -> None:
    following = opened("k7-3")
    assert following.headers["last-event-id"] == "k7-3"
    assert taken(following, event("weather", wind=3), change(4, "k7-4")) == [4]


def test_waits_grow_up_to_ten_seconds_and_begin_anew_when_events_come() -> None:
    attempts = Attempts(opened(), random.Random(1))
    attempts.opened()
    attempts.heard(1000)
    waits = [attempts.cut() for _ in range(9)]
    assert all(most / 2 <= wait <= most for wait, most in zip(waits, [1, 2, 4, 8] + [SECONDS_MAX] * 5, strict=True))
    attempts.heard(None)
    assert attempts.cut() <= 1


def test_refusals_are_final_and_silence_is_if_nobody_ever_answered() -> None:
    attempts = Attempts(opened())
    silence = Unreachable(0, "unreachable", "no answer")
    with pytest.raises(Unreachable):
        attempts.failed(silence)
    attempts.opened()
    assert attempts.failed(silence) > 0
    assert attempts.failed(ServiceError(503, "not_ready", "starting", retry_after_seconds=30)) == 30
    with pytest.raises(NotFound):
        attempts.failed(NotFound(404, "not_found", "there is no such thing"))


def test_an_expired_position_is_given_up() -> None:
    following = opened("k7-3")
    attempts = Attempts(following)
    expired = PositionExpired(410, "position_expired", "gone")
    assert attempts.failed(expired) == 0 and following.position is None
    with pytest.raises(PositionExpired):
        attempts.failed(expired)
