"""How long a text of SQL may be. Checked before anything is made of it: a parsed statement takes 500 times its memory."""

from __future__ import annotations

from tidings.model.errors import SqlError

SQL_LENGTH_MAX = 64 * 1024
"""Characters of a subscription."""
LITERALS_MAX = 4_000
"""Numbers and texts in a subscription."""


def check_length(sql: str, length_max: int = SQL_LENGTH_MAX) -> None:
    """SqlError if the text is too long."""
    if len(sql) > length_max:
        raise SqlError(f"the text has {len(sql):,} characters", hint=f"the limit is {length_max:,}")


def check_literals(count: int) -> None:
    """SqlError if a text has too many literals."""
    if count > LITERALS_MAX:
        hint = f"the limit is {LITERALS_MAX:,}: give IN fewer values, or split the subscription"
        raise SqlError(f"the text has {count:,} constants", hint=hint)
