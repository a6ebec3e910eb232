"""JSON as a tree of keys below a root named `root`.

    {"name": "pen", "tags": ["red", "new"], "box": {"w": 1.50}}

    root 1    name 1.1 "pen"    tags 1.2 "red"    tags 1.3 "new"    box 1.4    w 1.4.1 "1.50"

- Children are in the order of the document. A number's text is the one in the document: 1.50 is not 1.5.
- An array of a key is no node: its members are, each under the key's name, in its place. An empty one leaves no trace but in
  its parent's `cont`.
- An array that is itself a member of an array, or the whole document, is a node. Its members are its children, under the same
  name: in {"a": [[1, 2], []]} the first `a` (1.1) has children `a` (1.1.1, 1.1.2), the second (1.2) is a leaf. In [1, 2] they
  are `root` below `root`.
- The text content of an object is that of its members, one after the other; of an empty one, "".
- Canonical text: keys sorted by code points, no white space, numbers as they are written.

A key that stands twice in one object is refused, as it is not agreed which one counts.
"""

from __future__ import annotations

import json
from collections import Counter
from typing import Any, NoReturn

from tidings.relay.document import Document, DocumentBuilder, check_size
from tidings.relay.errors import DocumentError

ROOT = "root"


class _Number(str):
    """A number as it is written."""

    __slots__ = ()


def parse_json(data: bytes) -> Document:
    """DocumentError if the bytes are not one JSON value in UTF-8, or one that is too large."""
    check_size(data)
    try:
        value = json.loads(
            data.decode("utf-8-sig"),
            parse_int=_Number,
            parse_float=_Number,
            parse_constant=_refuse_constant,
            object_pairs_hook=_object,
        )
    except UnicodeDecodeError as error:
        raise DocumentError(f"not JSON: byte {error.start + 1} is not UTF-8") from None
    except json.JSONDecodeError as error:
        raise DocumentError(f"not JSON: {error.msg} at line {error.lineno}, column {error.colno}") from None
    except RecursionError:
        raise DocumentError("the document is too deep") from None
    builder = DocumentBuilder()
    _build(builder, ROOT, value)
    return builder.build(_canonical)


def _refuse_constant(name: str) -> NoReturn:
    raise DocumentError(f"not JSON: {name} is no value of JSON")


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        counts = Counter(key for key, _ in pairs)
        raise DocumentError(f"the key {_text(counts.most_common(1)[0][0])} stands twice in one object")
    return found


def _build(builder: DocumentBuilder, label: str, value: Any) -> None:
    """Recursion is bounded by DOCUMENT_DEPTH_MAX."""
    builder.open(label, value)
    if isinstance(value, dict):
        for key, member in value.items():
            _text(key)
            for single in member if isinstance(member, list) else [member]:
                _build(builder, key, single)
    elif isinstance(value, list):
        for member in value:
            _build(builder, label, member)
    else:
        text = _text(value)
        builder.text(value if isinstance(value, str) else text)
    builder.close()


def _canonical(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ",".join(f"{_text(key)}:{_canonical(value[key])}" for key in sorted(value)) + "}"
    if isinstance(value, list):
        return "[" + ",".join(map(_canonical, value)) + "]"
    return _text(value)


def _text(value: str | bool | None) -> str:
    """The JSON text of a scalar."""
    if isinstance(value, _Number):
        return str(value)
    text = json.dumps(value, ensure_ascii=False)
    try:
        text.encode()
    except UnicodeEncodeError:
        raise DocumentError(f"half a surrogate pair in {json.dumps(value)[:80]}: it is no text") from None
    return text
