"""Why a pattern or a document is refused."""

from __future__ import annotations

from tidings.model.errors import RecordError, TidingsError


class PatternError(TidingsError):
    """A view's tree pattern is refused. `column` (from 1) is where; `hint` says what would work."""

    def __init__(self, problem: str, *, column: int, hint: str) -> None:
        self.problem = problem
        self.column = column
        self.hint = hint
        super().__init__(f"{problem} at column {column}; {hint}")


class DocumentError(RecordError):
    """A document cannot be read; it goes to quarantine with this reason, and the next one is read."""


class RowsError(TidingsError):
    """A pattern has more rows in a document than anyone could use."""
