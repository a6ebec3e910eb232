"""The forms that have subscriptions in a replica, by number: which family each is of, and what it shows."""

from __future__ import annotations

from dataclasses import dataclass

from tidings.families.registry import family_of, spec_of
from tidings.families.shown import ProjectionTable
from tidings.kernels.rows import I64
from tidings.model.catalog import Catalog

_FORM_BYTES = 1_000
"""Approximate bytes of a form, its key left out."""


@dataclass
class FormEntry:
    """A form with subscriptions. number, family, projection: its number, and those of its family and projection."""

    key: str
    number: int
    family: int
    projection: int
    is_net: bool
    users: int = 0


class FormTable:
    """Forms of home points. A form is entered with its first subscription and forgotten with its last.

    Numbers of forms and projections are used again; numbers of families are not. `len()` is the number of forms.
    """

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._tables = {table.name: number for number, table in enumerate(catalog.tables)}
        self._known: dict[str, FormEntry] = {}
        self._places: list[FormEntry | None] = []
        """[numbers]: None if the number is free."""
        self._free: list[int] = []
        self._key_characters = 0
        self._net_forms = 0
        self.projections = ProjectionTable()
        self.families: list[str] = []
        """[families]: name. Families that were served once keep their number."""
        self.reads: dict[str, set[int]] = {}
        """Family -> numbers of the tables that its subscriptions read, those of forgotten forms included."""

    def __len__(self) -> int:
        return len(self._known)

    @property
    def has_net(self) -> bool:
        """Whether a form has subscriptions that are told the net effect of micro-batches."""
        return self._net_forms > 0

    @property
    def nbytes(self) -> int:
        """Approximate bytes of all forms and projections."""
        return _FORM_BYTES * len(self) + self._key_characters + 8 * len(self._places) + self.projections.nbytes

    def take(self, key: str, users: int) -> FormEntry:
        """The form with this key, which has so many more subscriptions."""
        entry = self._known.get(key)
        if entry is None:
            entry = self._known[key] = self._enter(key)
        entry.users += users
        return entry

    def keys_of(self, numbers: I64) -> list[str]:
        """Keys of forms that have subscriptions, by number."""
        entries = [self._places[number] for number in numbers.tolist()]
        return [entry.key for entry in entries if entry is not None]

    def give(self, numbers: I64) -> None:
        """Ends a subscription of each of these forms, given by number, [subscriptions]."""
        for number in numbers.tolist():
            entry = self._places[number]
            assert entry is not None, f"form {number} has no subscription"
            entry.users -= 1
            if not entry.users:
                del self._known[entry.key]
                self._key_characters -= len(entry.key)
                self._net_forms -= entry.is_net
                self._places[number] = None
                self._free.append(number)
                self.projections.give(entry.projection)

    def _enter(self, key: str) -> FormEntry:
        (family, form), spec = family_of(key), spec_of(key, self._catalog)
        if family.name not in self.families:
            self.families.append(family.name)
        self.reads.setdefault(family.name, set()).update(self._tables[name] for name in spec.tables)
        shown = [
            (spec.tables.index(ref.table), self._tables[ref.table], self._column(ref.table, ref.column), name)
            for ref, name in spec.shown
        ]
        if self._free:
            number = self._free.pop()
        else:
            number = len(self._places)
            self._places.append(None)
        entry = FormEntry(key, number, self.families.index(family.name), self.projections.take(shown), form.is_net)
        self._places[number] = entry
        self._key_characters += len(key)
        self._net_forms += entry.is_net
        return entry

    def _column(self, table: str, column: str) -> int:
        return self._catalog.table(table).column_names.index(column)
