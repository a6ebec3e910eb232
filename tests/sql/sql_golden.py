"""Golden files: blocks of SQL and what must come of it, separated by blank lines, the outcome marked by `>`.

Run as a script with the name of a file to print it with the outcomes as they are now; read them before keeping them.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

from tidings.model.errors import SqlError
from tidings.sql import Compiler, Constants, Interval, Statement, parse_catalog

FOLDER = Path(__file__).parent / "golden"
CATALOG = parse_catalog((FOLDER / "catalog.sql").read_text())


def cases(name: str) -> list[tuple[str, str]]:
    """SQL and expected outcome of every block of the file."""
    found = []
    for block in (FOLDER / name).read_text().strip().split("\n\n"):
        lines = block.split("\n")
        sql = "\n".join(line for line in lines if not line.startswith("> "))
        found.append((sql, "\n".join(line[2:] for line in lines if line.startswith("> "))))
    return found


def outcome(compiler: Compiler, sql: str) -> str:
    try:
        return describe(compiler.compile(sql))
    except SqlError as error:
        return f"{error.line}:{error.column} {error.construct}\n{error.problem}; {error.hint}"


def describe(statement: Statement) -> str:
    constants = statement.constants
    lines = [_constants(disjunct) for disjunct in constants.disjuncts or (constants,)]
    return "\n".join([statement.shape.describe(), *(line for line in lines if line)])


def _constants(constants: Constants) -> str:
    parts = [_values(values) for values in constants.equalities]
    parts += [_interval(interval) for interval in constants.intervals]
    parts += [f"moved {', '.join(str(number) for number in constants.movement)}"] if constants.movement else []
    return " ".join(parts)


def _values(values: tuple[Any, ...]) -> str:
    return "{" + ", ".join(_value(value) for value in values) + "}"


def _interval(interval: Interval) -> str:
    if interval.is_empty:
        return "empty"
    low = ("[" if interval.lo_closed else "(") + ("" if interval.lo is None else _value(interval.lo))
    high = ("" if interval.hi is None else _value(interval.hi)) + ("]" if interval.hi_closed else ")")
    return f"{low}..{high}"


def _value(value: Any) -> str:
    return value.isoformat() if hasattr(value, "isoformat") else repr(value)


if __name__ == "__main__":
    shared = Compiler(CATALOG)
    for text, _ in cases(sys.argv[1]):
        print(text)
        print("\n".join("> " + line for line in outcome(shared, text).split("\n")), end="\n\n")
