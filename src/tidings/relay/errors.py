"""Why a pattern of a view is refused."""

from __future__ import annotations

from tidings.model.errors import TidingsError


class PatternError(TidingsError):
    """A view's tree pattern is refused. `column` (from 1) is where; `hint` says what would work."""

    def __init__(self, problem: str, *, column: int, hint: str) -> None:
        self.problem = problem
        self.column = column
        self.hint = hint
        super().__init__(f"{problem} at column {column}; {hint}")
