"""Ids that users give: texts that every database can keep, and that fit into its keys."""

from __future__ import annotations

from tidings.model.errors import UsageError

ID_BYTES_MAX = 200
"""Bytes of an id in UTF-8: a notice's id has three of them, quoted, and PostgreSQL's keys have at most 2,700 bytes."""


def checked_id(what: str, text: str) -> str:
    """The id of a lot, a bid, ..., or UsageError."""
    if not isinstance(text, str) or not text:
        raise UsageError(f"the id of a {what} is a text that is not empty, not {text!r}")
    try:
        length = len(text.encode())
    except UnicodeEncodeError:
        raise UsageError(f"the id of a {what} is no valid Unicode: {text!r}") from None
    if "\0" in text or length > ID_BYTES_MAX:
        raise UsageError(f"the id of a {what} has a NUL character or more than {ID_BYTES_MAX} bytes: {text!r:.60}")
    return text
