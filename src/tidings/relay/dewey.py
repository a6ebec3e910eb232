"""Structural ids: where a node stands in its document, such that two ids tell which node is above the other.

The root is (1,), its third child (1, 3); an attribute has its name behind the id of its element, (1, 3, "@name"). In texts the
parts are joined by dots: `1.3.@name`. A key of JSON that starts with @ is a child like any other and has a number.

Between views, ids travel as keys: texts with one character a level, and the name of an attribute between NULs. Keys compare in
document order, a node's key is the start of its descendants' keys, and nobody has to take them apart to join them.
"""

from __future__ import annotations

Dewey = tuple[int | str, ...]


def dewey_text(id: Dewey) -> str:
    return ".".join(map(str, id))


Key = str
"""An id as `dewey_key` writes it."""

KEY_ROOT: Key = chr(1)
_ATTRIBUTE = "\0"
_BEHIND = chr(0x10FFFF)
# Half a surrogate pair is no text: numbers from there on are moved. There are more characters than nodes in any document.
_SURROGATES, _MOVED = 0xD800, 0x800


def key_part(part: int | str) -> str:
    """One level of a key: the number of a child, or the name of an attribute with its @."""
    if isinstance(part, str):
        return f"{_ATTRIBUTE}{part[1:]}{_ATTRIBUTE}"  # the second one: @k is not the start of @kind
    return chr(part if part < _SURROGATES else part + _MOVED)


def dewey_key(id: Dewey) -> Key:
    return "".join(map(key_part, id))


def key_text(key: Key) -> str:
    """The id that a key stands for, as text."""
    numbers, is_attribute, name = key.partition(_ATTRIBUTE)
    parts = [str(code if (code := ord(part)) < _SURROGATES else code - _MOVED) for part in numbers]
    return ".".join([*parts, "@" + name[:-1]] if is_attribute else parts)


def key_parent(key: Key) -> Key:
    """Empty for the root."""
    return key[: key.index(_ATTRIBUTE)] if _ATTRIBUTE in key else key[:-1]


def key_behind(key: Key) -> Key:
    """Above the keys of all descendants, and not above any other key that is above this one."""
    return key + _BEHIND
