"""Conditions that stand alone: the constraints of publications, compiled as subscriptions to their table are."""

from __future__ import annotations

from functools import lru_cache

from tidings.model.catalog import Catalog, Table
from tidings.model.errors import SqlError
from tidings.sql.compiler import Compiler, Statement
from tidings.sql.refusals import CONDITIONS


class ConditionCompiler:
    """Compiles conditions on the attributes of one table of constraints."""

    def __init__(self, catalog: Catalog, table: Table) -> None:
        self._compiler = Compiler(catalog)
        from sqlglot.tokens import Tokenizer  # takes long to import, and most catalogs have no such table

        # Quoted names are read with more care, and so more slowly: most need no quotes.
        is_plain = table.name.isidentifier() and table.name.upper() not in Tokenizer.KEYWORDS
        name = table.name if is_plain else '"' + table.name.replace('"', '""') + '"'
        self._head = f"SELECT * FROM {name} WHERE "

    def compile(self, condition: str) -> Statement:
        """Compiles a condition. Raises SqlError, which points into the condition, if it is not supported."""
        if not condition or condition.isspace():
            raise SqlError("the constraint is empty", hint="give it at least one condition, as price <= 10")
        try:
            statement = self._compiler.compile(self._head + condition)
        except SqlError as error:
            raise self._moved(error) from None
        if statement.shape.order is not None:
            line, column, construct = statement.where("order")
            found = SqlError(
                "a constraint has no order", construct=construct, line=line, column=column, hint="leave it out"
            )
            raise self._moved(found)
        return statement

    def _moved(self, error: SqlError) -> SqlError:
        """The error with its place in the condition alone."""
        shift = len(self._head) if error.line == 1 else 0
        column = max(1, error.column - shift) if error.line else 0
        construct = error.construct.removeprefix(self._head) if error.line == 1 else error.construct
        # What would help a whole query does not help a condition.
        hint = CONDITIONS if "SELECT" in error.hint or "JOIN" in error.hint else error.hint
        return SqlError(error.problem, construct=construct, line=error.line, column=column, hint=hint)


@lru_cache(maxsize=64)
def _compiler_of(catalog: Catalog, table: Table) -> ConditionCompiler:
    return ConditionCompiler(catalog, table)


def compile_condition(catalog: Catalog, table: Table, condition: str) -> Statement:
    """As `ConditionCompiler.compile`."""
    return _compiler_of(catalog, table).compile(condition)
