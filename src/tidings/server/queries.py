"""What the service knows of a query before the engine does: whether it is supported, and what its rows look like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from tidings.explaining import explain_query
from tidings.families.join.result import shown_columns, shown_names
from tidings.families.registry import family_of
from tidings.model.catalog import Catalog
from tidings.pipeline.door import Door
from tidings.server.api.answers import Explained
from tidings.sql import Compiler
from tidings.sql.parameters import bind

Params = Mapping[str, Any] | Sequence[Any] | None


class Described(NamedTuple):
    """text: the query with its parameters as literals. key: columns that tell rows apart, if all of them are shown."""

    text: str
    family: str
    columns: list[str]
    key: list[str]
    order: dict[str, Any] | None


class Queries:
    """Compiles queries of one catalog. Templates are cached: the second query of a shape takes microseconds."""

    def __init__(self, catalog: Catalog) -> None:
        self.use(catalog)

    def use(self, catalog: Catalog) -> None:
        """Goes on with other tables."""
        self.catalog = catalog
        self._door = Door(catalog)
        self._compiler = Compiler(catalog)

    @staticmethod
    def bound(sql: str, params: Params) -> str:
        """The query with its parameters as literals."""
        return bind(sql, params)

    def describe(self, sql: str, params: Params, id: str = "") -> Described:
        """SqlError or RecordError if the query cannot be served."""
        text = bind(sql, params)
        placement = self._door.place(text, id=id)
        shape = self._compiler.compile(text).shape
        shown = shown_columns(shape, self.catalog)
        names = shown_names(shown)
        keys = [(table, column) for table in shape.tables for column in self.catalog.table(table).key]
        merged = {
            (edge.right, right): (edge.left, left)
            for edge in shape.joins
            for left, right in zip(edge.left_columns, edge.right_columns, strict=True)
        }
        places = {tuple(ref): name for ref, name in zip(shown, names, strict=True)}
        found = [places.get(key) or places.get(merged.get(key, key)) for key in keys]
        key = [name for name in dict.fromkeys(found) if name is not None] if all(found) else []
        order = None
        if shape.order is not None:
            by = places.get(tuple(shape.order.column))
            order = {
                "by": by or shape.order.column.column,
                "descending": shape.order.descending,
                "shown": by is not None,
            }
        return Described(text, family_of(placement.form)[0].name, list(names), key, order)

    def explain(self, sql: str, params: Params) -> Explained:
        found = self.describe(sql, params)
        lines = explain_query(found.text, self.catalog, {})
        said = dict(lines)
        return {
            "family": found.family,
            "form": said["form"],
            "points": [text for label, text in lines if label in ("point", "channel")],
            "columns": found.columns,
            "key": found.key,
            "order": found.order,  # type: ignore[typeddict-item]
            "cost": said["a change costs"],
            "estimate": None,
        }
