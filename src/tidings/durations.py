"""Durations and sizes as people write them: 24h, 7d, 500MB, 4GiB."""

from __future__ import annotations

import re

from tidings.model.errors import UsageError

_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_BYTES = {"B": 1, "kB": 10**3, "MB": 10**6, "GB": 10**9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
_TEXT = re.compile(r"(\d{1,12}(?:\.\d+)?)\s*([A-Za-z]+)")


def seconds_of(text: str) -> float:
    """UsageError if it is no duration."""
    return _read(text, _SECONDS, "a duration", "24h")


def bytes_of(text: str) -> int:
    """UsageError if it is no size."""
    return int(_read(text, _BYTES, "a size", "4GiB"))


def _read(text: str, units: dict[str, float] | dict[str, int], what: str, example: str) -> float:
    found = _TEXT.fullmatch(text.strip())
    if found is None or found[2] not in units:
        raise UsageError(f"{text!r} is not {what}: a number and one of {', '.join(units)}, as {example}")
    return float(found[1]) * units[found[2]]
