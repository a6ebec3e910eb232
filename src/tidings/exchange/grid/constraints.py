"""What is made of a batch of constraints on Spark: compiled in tasks, matched, and refused with a reason."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from typing import TypeVar

import pyarrow as pa
from pyspark.sql import DataFrame

from tidings.model.catalog import Table
from tidings.model.errors import SqlError, UsageError
from tidings.sql import Statement, parse_catalog
from tidings.sql.conditions import ConditionCompiler

_T = TypeVar("_T")


@dataclass(frozen=True)
class Matches(AbstractContextManager["Matches"]):
    """pairs: (p_id, s_id), each once. refused: (side, id, reason) of constraints that cannot be used, which match nothing."""

    pairs: DataFrame
    refused: DataFrame
    _kept: tuple[DataFrame, ...]

    def close(self) -> None:
        """Frees the rows that constraints were compiled to. Frames that are used afterwards compile them again."""
        for frame in self._kept:
            frame.unpersist()

    def __exit__(self, *_: object) -> None:
        self.close()


def constraints_table(catalog: str, table: str) -> Table:
    """A table of constraints; UsageError if its rows are something else."""
    parsed = parse_catalog(catalog).table(table)
    if not parsed.has_constraints:
        raise UsageError(f"the rows of table {table!r} are no constraints: create it WITH (rows = 'constraints')")
    return parsed


@lru_cache(maxsize=8)
def compiler_of(catalog: str, table: str) -> tuple[ConditionCompiler, Table]:
    parsed = parse_catalog(catalog)
    return ConditionCompiler(parsed, parsed.table(table)), parsed.table(table)


def compiled_batch(
    catalog: str, table: str, batch: pa.RecordBatch, make: Callable[[Statement], _T]
) -> tuple[list[tuple[str, _T]], list[tuple[str | None, str]]]:
    """(id, what is made of it) of the constraints of a batch of (id, where), and (id, reason) of those that cannot be used."""
    compiler, _ = compiler_of(catalog, table)
    usable: list[tuple[str, _T]] = []
    refused: list[tuple[str | None, str]] = []
    for id, where in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
        if id is None or where is None:
            refused.append((id, f"the {'id' if id is None else 'constraint'} is null"))
            continue
        try:
            usable.append((id, make(compiler.compile(where))))
        except SqlError as error:
            refused.append((id, str(error)))
    return usable, refused
