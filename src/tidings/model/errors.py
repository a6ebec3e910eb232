"""Every error a user can cause, under one root, so that callers can tell mistakes in the input from bugs in the code."""

from __future__ import annotations


class TidingsError(Exception):
    """Root of all errors raised on purpose; its text says what is wrong, where, and what would work."""


class CatalogError(TidingsError):
    """The catalog (tables, columns, keys) cannot be used as written."""


class RecordError(TidingsError):
    """One record of an input stream is unusable; it goes to quarantine and the stream goes on."""


class SqlError(TidingsError):
    """A subscription's SQL is refused.

    `line` and `column` (both from 1) point at `construct`, the offending text; `hint` says what would work.
    """

    def __init__(self, problem: str, *, construct: str = "", line: int = 0, column: int = 0, hint: str = "") -> None:
        self.problem = problem
        self.construct = construct
        self.line = line
        self.column = column
        self.hint = hint
        where = f" at line {line}, column {column}" if line else ""
        what = f" near {construct!r}" if construct else ""
        advice = f"; {hint}" if hint else ""
        super().__init__(f"{problem}{what}{where}{advice}")


class UsageError(TidingsError):
    """A command was called with options that do not fit together or name things that do not exist."""


class RunError(TidingsError):
    """A run failed for a reason that lies in none of its inputs: a full disk, a process that was killed. Exit code 1."""
