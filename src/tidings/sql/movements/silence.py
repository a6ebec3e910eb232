"""`silent_for(column) >= T`: the option beside a movement predicate that tells a row again after a time at the latest.

T belongs to the shape. sqlglot reads intervals loosely ('.5 hour' is 5 hours to it), so the parser is shown the bare
literal of each `INTERVAL literal [unit]` and the interval is read here from the text (see `Source.intervals`).
"""

from __future__ import annotations

from typing import NamedTuple

from sqlglot import exp

from tidings.model.catalog import Column
from tidings.model.errors import SqlError
from tidings.model.types import ColumnType
from tidings.sql.literals import LiteralError
from tidings.sql.movements.durations import read_duration
from tidings.sql.refusals import MOVEMENT_OR_SILENCE
from tidings.sql.scope import Scope
from tidings.sql.shape import Silence
from tidings.sql.source import Source

_USAGE = "write silent_for(column) >= INTERVAL '1 hour', or silent_for(column) >= 100 for a column of integers"
_INTEGERS_MAX = {ColumnType.BIGINT: 2**63 - 1, ColumnType.INT: 2**31 - 1}
_TEMPORAL = (ColumnType.TIMESTAMP, ColumnType.DATE)


class SilencePredicate(NamedTuple):
    """The option, and the offset of T's literal, which is no constant of the query."""

    silence: Silence
    start: int


def is_silent_for(node: object) -> bool:
    return isinstance(node, exp.Anonymous) and node.name.lower() == "silent_for"


def is_silence(node: exp.Expr) -> bool:
    """Whether the node compares silent_for on its left, validly or not."""
    return is_silent_for(node) or (isinstance(node.this, exp.Expr) and is_silent_for(node.this.unnest()))


def interval_starts(source: Source, tree: exp.Expr) -> set[int]:
    """Offsets of the tokens of all intervals that silent_for is compared with; other intervals are not supported."""
    starts: set[int] = set()
    for call in tree.find_all(exp.Anonymous):
        compared = call.parent.parent if isinstance(call.parent, exp.Paren) else call.parent
        if is_silent_for(call) and isinstance(compared, exp.Predicate):
            for literal in compared.find_all(exp.Literal):
                start = literal._meta.get("start", -1) if literal._meta else -1
                starts.update(token.start for token in source.intervals.get(start, ()))
    return starts


def lone_silence(node: exp.Expr, scope: Scope) -> SqlError:
    hint = f"write {MOVEMENT_OR_SILENCE}"
    return scope.source.error("silent_for stands without a movement predicate", node, hint)


def read_silence(node: exp.Expr, scope: Scope) -> SilencePredicate:
    """Reads a condition for which `is_silence` holds; SqlError if it is not valid."""
    if not isinstance(node, exp.GTE) or not is_silent_for(node.this):
        raise scope.source.error("silent_for is compared by >= only", node, _USAGE)
    arguments = node.this.expressions
    if len(arguments) != 1 or not isinstance(arguments[0], exp.Column):
        raise scope.source.error("silent_for takes one column", node.this, _USAGE)
    ref, column = scope.resolve(arguments[0])
    if column.type not in _TEMPORAL and column.type not in _INTEGERS_MAX:
        problem = f"column {column.name!r} is {column.type.value} and cannot measure silence"
        raise scope.source.error(problem, arguments[0], "use a column of type TIMESTAMP, DATE, BIGINT or INT")
    negative = False
    inner = node.expression
    while isinstance(inner, exp.Paren | exp.Neg):
        negative ^= isinstance(inner, exp.Neg)
        inner = inner.this
    start = inner._meta.get("start", -1) if isinstance(inner, exp.Literal) and inner._meta else -1
    if start not in scope.source.literal_spans:
        raise scope.source.error("silent_for is not compared with a constant", node, _USAGE)
    _check_kind(node, inner, start, column, scope)
    return SilencePredicate(Silence(ref, _read_ticks(start, negative, column.type, scope.source)), start)


def _check_kind(node: exp.Expr, literal: exp.Expr, start: int, column: Column, scope: Scope) -> None:
    is_interval = start in scope.source.intervals
    if column.type in _TEMPORAL and not is_interval:
        hint = f"write silent_for({column.name}) >= INTERVAL '1 hour'"
        raise scope.source.error(f"column {column.name!r} is {column.type.value} and needs an interval", node, hint)
    if column.type in _INTEGERS_MAX and (is_interval or literal.is_string):
        hint = f"write silent_for({column.name}) >= 100"
        raise scope.source.error(f"column {column.name!r} is {column.type.value} and needs a number", node, hint)


def _read_ticks(start: int, negative: bool, type: ColumnType, source: Source) -> int:
    words = source.intervals.get(start)
    first, end = (words[0].start, words[-1].end + 1) if words else source.literal_spans[start]
    try:
        if words is None:
            return _read_number(source.text[first:end], negative, _INTEGERS_MAX[type])
        if negative:
            raise LiteralError("the interval must be positive")
        texts = [source.text[word.start : word.end + 1] for word in words[1:]]
        return read_duration(_in_one(texts))
    except LiteralError as error:
        problem = f"silent_for cannot take this {'interval' if words else 'number'}"
        raise source.error_at(problem, first, end, str(error)) from None


def _in_one(texts: list[str]) -> str:
    """`'1 hour'`, `'1' HOUR` and `1 HOUR` as number and unit; a unit after the text must be the only one."""
    literal, *unit = texts
    inner = literal[1:-1] if literal[0] == "'" else literal
    if unit and any(letter.isalpha() for letter in inner):
        raise LiteralError("write the unit once: INTERVAL '1 hour' or INTERVAL '1' HOUR")
    return " ".join([inner, *unit])


def _read_number(text: str, negative: bool, largest: int) -> int:
    # The length comes first: Python refuses to convert thousands of digits.
    is_whole = text.isascii() and text.isdigit() and len(text) <= len(str(largest))
    if negative or not is_whole or not 1 <= int(text) <= largest:
        raise LiteralError(f"use a whole number from 1 to {largest:,}")
    return int(text)
