"""Values for the parameters of a query, `?` or `:name`, written into its text as literals."""

from __future__ import annotations

import datetime as dt
import math
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal

from tidings.model.errors import SqlError

_TOKEN = re.compile(
    r"""
      '(?:[^']|'')*'            # text
    | "(?:[^"]|"")*"            # name in quotes
    | --[^\n]*                  # comment
    | /\*.*?\*/
    | ::                        # cast
    | (?P<mark>\?)
    | :(?P<name>[A-Za-z_]\w*)
    """,
    re.VERBOSE | re.DOTALL,
)


def bind(sql: str, params: Mapping[str, object] | Sequence[object] | None) -> str:
    """The query with its parameters as literals. SqlError if a value is missing, is left over, or cannot be a literal."""
    if params is None:
        return sql
    is_named = isinstance(params, Mapping)
    used: set[str | int] = set()

    def literal(found: re.Match[str]) -> str:
        if found["mark"] is None and found["name"] is None:
            return found[0]
        key: str | int = found["name"] if is_named else len(used)
        if is_named != (found["name"] is not None):
            raise _error(sql, found, "parameters are named (:name) with a dict, and marked (?) with a list")
        try:
            value = params[key]  # type: ignore[index]
        except (KeyError, IndexError):
            raise _error(sql, found, "there is no value for this parameter") from None
        used.add(key)
        try:
            return _literal(value)
        except ValueError as error:
            raise _error(sql, found, str(error)) from None

    text = _TOKEN.sub(literal, sql)
    if len(used) < len(params):
        over = sorted(map(str, set(params) - used)) if isinstance(params, Mapping) else [str(len(params) - len(used))]
        raise SqlError(f"values without a parameter in the query: {', '.join(over)}")
    return text


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, bool):
        return "TRUE" if value else "FALSE"
    if isinstance(value, int):
        return str(value)
    if isinstance(value, float | Decimal):
        if not math.isfinite(value):
            raise ValueError(f"{value} is not a value")
        return repr(value) if isinstance(value, float) else str(value)
    if isinstance(value, str):
        return "'" + value.replace("'", "''") + "'"
    if isinstance(value, dt.datetime):
        plain = value if value.tzinfo is None else value.astimezone(dt.UTC).replace(tzinfo=None)
        return f"'{plain.isoformat(sep=' ')}'"
    if isinstance(value, dt.date):
        return f"'{value.isoformat()}'"
    if isinstance(value, list | tuple) and value:
        return "(" + ", ".join(map(_literal, value)) + ")"
    raise ValueError(f"a {type(value).__name__} cannot be a value of a query")


def _error(sql: str, found: re.Match[str], problem: str) -> SqlError:
    before = sql[: found.start()]
    line = before.count("\n") + 1
    return SqlError(problem, construct=found[0], line=line, column=found.start() - before.rfind("\n"))
