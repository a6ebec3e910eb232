"""Names of strategies; that of semijoins carries how its skylines are drawn: `ref-sj:clu`."""

from __future__ import annotations

SKYLINES = ("clu", "clu+", "tup", "tup+", "sub", "min")
NAMES = ("auto", *(f"ref-sj:{skyline}" for skyline in SKYLINES), "enum-sj", "rel-sel", "ref-j+", "ref-j", "enum-j")
