"""Server-sent events: the same events, wherever the bytes are cut and however lines end."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tidings.client.sse import EventParser, ServerEvent

LINE = st.one_of(
    st.sampled_from(["", "", ": comment", "data", "data:", "data: x", "event: change", "id: k7-1", "id", "retry: 250"]),
    st.sampled_from(["retry: soon", "id: a\0b", "unknown: 1", "data:  two spaces", "data: ü€😀", ":", "event"]),
    st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), max_size=8),
)
BREAK = st.sampled_from(["\n", "\r", "\r\n"])
STREAM = st.lists(st.tuples(LINE, BREAK), max_size=20).map(lambda lines: "".join(a + b for a, b in lines).encode())


def whole(text: bytes) -> tuple[list[ServerEvent], int | None]:
    parser = EventParser()
    return parser.feed(text), parser.retry_ms


def plainly(text: str) -> list[ServerEvent]:
    """The definition, for a text that is there as a whole: blocks between empty lines."""
    found, data, name, id = [], [], "", ""
    for line in text.removeprefix("\ufeff").replace("\r\n", "\n").replace("\r", "\n").split("\n")[:-1]:
        field, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if not line:
            found += [ServerEvent(name or "message", "\n".join(data), id)] if data else []
            data, name = [], ""
        elif field == "data":
            data.append(value)
        elif field == "event":
            name = value
        elif field == "id" and "\0" not in value:
            id = value
    return found


@given(STREAM)
def test_a_whole_stream_is_read_as_defined(text: bytes) -> None:
    assert whole(text)[0] == plainly(text.decode())


@given(STREAM, st.lists(st.integers(0, 200), max_size=30))
def test_cuts_make_no_difference(text: bytes, cuts: list[int]) -> None:
    at = [0, *sorted(min(cut, len(text)) for cut in cuts), len(text)]
    parser = EventParser()
    events = [event for a, b in pairwise(at) for event in parser.feed(text[a:b])]
    assert (events, parser.retry_ms) == whole(text)


@given(STREAM)
def test_one_byte_after_the_other_makes_no_difference(text: bytes) -> None:
    parser = EventParser()
    events = [event for number in range(len(text)) for event in parser.feed(text[number : number + 1])]
    assert (events, parser.retry_ms) == whole(text)


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
def test_an_event_of_the_service(end: str) -> None:
    lines = ["retry: 1000", "", ": hello", "event: change", "id: k7f3q2m1-120", 'data: {"seq":120}', "", "data: half"]
    events, retry_ms = whole(end.join(lines).encode())
    assert events == [ServerEvent("change", '{"seq":120}', "k7f3q2m1-120")]
    assert retry_ms == 1000


def test_an_id_stays_until_there_is_another_one() -> None:
    assert [event.id for event in whole(b"data: 1\n\nid: a\ndata: 2\n\ndata: 3\n\nid: b\n\ndata: 4\n\n")[0]] == [
        "",
        "a",
        "a",
        "b",
    ]
