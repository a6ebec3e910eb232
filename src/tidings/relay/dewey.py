"""Structural ids: where a node stands in its document, such that two ids tell which node is above the other.

The root is (1,), its third child (1, 3); an attribute has its name behind the id of its element, (1, 3, "@name"). In texts the
parts are joined by dots: `1.3.@name`. A key of JSON that starts with @ is a child like any other and has a number.
"""

from __future__ import annotations

Dewey = tuple[int | str, ...]


def dewey_text(id: Dewey) -> str:
    return ".".join(map(str, id))


def parse_dewey(text: str) -> Dewey:
    """The inverse of `dewey_text`; ValueError for other texts."""
    numbers, at, name = text.partition(".@")
    if at and not name:
        raise ValueError(f"no Dewey number: {text!r}")
    id = tuple(int(part) for part in numbers.split("."))
    if dewey_text(id) != numbers or min(id) < 1:
        raise ValueError(f"no Dewey number: {text!r}")
    return (*id, "@" + name) if at else id


def is_parent(upper: Dewey, lower: Dewey) -> bool:
    return len(lower) == len(upper) + 1 and lower[: len(upper)] == upper


def is_ancestor(upper: Dewey, lower: Dewey) -> bool:
    """Whether `upper` is a proper ancestor of `lower`."""
    return len(lower) > len(upper) and lower[: len(upper)] == upper


def document_order(id: Dewey) -> tuple[tuple[int, str], ...]:
    """Sort key: a node before its attributes, by name, and these before its children."""
    return tuple((0, part) if isinstance(part, str) else (part, "") for part in id)
