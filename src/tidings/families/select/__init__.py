"""Select: every row of a table that satisfies a conjunction of ranges and equalities."""

from tidings.families.select.family import SelectFamily

__all__ = ["SelectFamily"]
