"""Forgets the rows of a table that nobody follows any more."""
# mypy: disallow-untyped-decorators=False

from __future__ import annotations

from tidings.families.drift.kernels.audience_layout import Audiences, remove_row
from tidings.kernels.jit import kernel
from tidings.kernels.rows import I64, NONE


@kernel
def forget_rows(audiences: Audiences, versions: I64) -> None:
    """Forgets rows, given by their current versions, with their links and groups. Their groups have no audiences."""
    for version in versions:
        row = audiences.row_of[version]
        if row != NONE:
            remove_row(audiences, row)
            audiences.row_of[version] = NONE
