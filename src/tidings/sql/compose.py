"""Templates put together from the parts of a statement, each of which was parsed once: for skeletons never met before.

The WHERE clause of a skeleton is cut at AND, OR and the parentheses around these into atoms; all else is its frame:

    SELECT symbol FROM stocks WHERE sector = ? AND (per < ? OR lots BETWEEN ? AND ?) ORDER BY per LIMIT 5
    '------- head ----------'       '--------'      '-----'    '------------------'  '------ tail ------'

Where queries compare any of many columns nearly every skeleton is new, but hardly any atom is. `SELECT * FROM stocks WHERE
atom` is parsed for each atom, `head WHERE atom tail` for each frame. Joined as the text joins them, the conditions of the atoms
are those that a parse of the whole would find, in the same order; the same functions make a template of them (`template.py`).

Why this is so: AND, OR and parentheses join operands that the parser reads one by one, and whatever it accepts alone is a
whole operand. A cut in a wrong place, of which only odd texts are capable, leaves a part that is refused. Then the statement
is parsed as a whole, and so is every statement that is refused in the end: only that parse knows what to say and where.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from enum import Enum
from typing import NamedTuple, TypeAlias

from sqlglot import exp

from tidings.model.catalog import Catalog
from tidings.model.errors import SqlError
from tidings.sql.bind import Slots
from tidings.sql.disjuncts.conjunctions import DisjunctTemplate
from tidings.sql.disjuncts.terms import TooMany
from tidings.sql.fingerprint import HOLE, Cut
from tidings.sql.generations import Generations
from tidings.sql.predicate import AllOf, AnyOf, Condition, Operand, Predicate
from tidings.sql.query import Query, read_query
from tidings.sql.shape import ColumnRef
from tidings.sql.template import (
    BoundColumn,
    Outline,
    Template,
    bound_column,
    bound_columns,
    make_template,
    outline_of,
    plain_template,
)

ATOMS_MAX, DEPTH_MAX = 64, 20
"""Statements with more atoms, or parentheses nested deeper, are parsed as a whole."""

_NUMBER, _STRING = HOLE, "\1"
"""Stand for literals. They are told apart, so that it does not depend on the literals whether a part is accepted."""
_LITERAL = re.compile(f"[{_NUMBER}{_STRING}]")
_EXAMPLES = {_NUMBER: "0", _STRING: "''"}

# A word after a dot is a name, whatever word it is; so is what stands in double quotes.
_NAMES = r'"[^"]*"|\.\s*\w+'
_HEAD_MARKS = re.compile(rf"{_NAMES}|\b(?:from|where)\b", re.IGNORECASE)
_WHERE_MARKS = re.compile(rf'{_NAMES}|[();"]|\b(?:and|or|between|order)\b', re.IGNORECASE)

_NO_NODE = exp.Null()
"""Stands for syntax trees, which only errors need: conditions are kept without."""

Clause: TypeAlias = "list[list[str | Clause]]"
"""A condition taken apart: alternatives, joined by OR, of atoms and clauses in parentheses, joined by AND."""


class Parts(NamedTuple):
    """A skeleton taken apart. origin: the FROM clause, with which head ends and which atoms are about."""

    head: str
    origin: str
    where: Clause
    tail: str
    atoms: list[str]

    @property
    def is_flat(self) -> bool:
        """Whether the clause is nothing but atoms joined by AND."""
        return self.where == [self.atoms]


class Atom(NamedTuple):
    """Conditions joined by AND that came of an atom. Their operands start at the index of their literal in the atom."""

    conditions: tuple[Condition, ...]
    literal_count: int

    def behind(self, count: int) -> tuple[Condition, ...]:
        """The conditions with operands that start at the index of their literal in a statement, `count` others being first."""
        return tuple([_shifted(condition, count) for condition in self.conditions]) if count else self.conditions


class PlacedAtom(NamedTuple):
    """An atom whose literals have a certain place among those of a statement: the columns it makes, if it is plain."""

    columns: list[BoundColumn] | None
    literal_count: int


class NoPart(Enum):
    """Stands for a part that was met only once, beside other new parts, and not parsed; or that is not accepted alone."""

    SEEN = 1
    REFUSED = 2


class Composer:
    """Makes templates of parts, and keeps the parts it has met: as many, and with as many characters, as it is told."""

    def __init__(self, catalog: Catalog, parts_max: int, characters_max: int) -> None:
        self._catalog = catalog
        self._frames: Generations[tuple[str, ...], Outline | NoPart] = Generations(parts_max, characters_max)
        """By head and tail."""
        self._atoms: Generations[tuple[str, ...], Atom | NoPart] = Generations(parts_max, characters_max)
        """By FROM clause and text."""
        self._placed: Generations[tuple[str, ...], PlacedAtom] = Generations(parts_max, characters_max)
        """By FROM clause, text and number of literals before it: binders know which literal of a statement they read."""

    @property
    def nbytes(self) -> int:
        """Approximate bytes of the parts kept."""
        return self._frames.nbytes + self._atoms.nbytes + self._placed.nbytes

    def template(self, cut: Cut) -> Template | DisjunctTemplate | None:
        """The template of a cacheable skeleton; None if the statement must be parsed as a whole."""
        parts = taken_apart(_marked(cut))
        if parts is None:
            return None
        slots = range(len(cut.literals))
        frame = self._frames.get((parts.head, parts.tail))
        if isinstance(frame, Outline) and parts.is_flat:
            columns = self._columns(parts, frame, slots)
            if columns is not None:
                return plain_template(frame, columns, len(slots))
        found = self._read_parts(parts, frame)
        if found is None:
            return None
        frame, atoms = found
        conditions: list[tuple[Condition, ...]] = []
        slot = 0
        for atom in atoms:
            conditions.append(atom.behind(slot))
            slot += atom.literal_count
        try:
            return make_template(frame, AllOf(tuple(_joined(parts.where, iter(conditions)))), len(slots), slots)
        except TooMany:
            return None

    def _columns(self, parts: Parts, frame: Outline, slots: Slots) -> list[BoundColumn] | None:
        """The columns of a conjunction in order; None if an atom is not parsed yet, or if the conjunction is not plain."""
        columns: dict[ColumnRef, BoundColumn] = {}
        slot = 0
        for text in parts.atoms:
            atom = self._placed_atom(parts.origin, text, slot, frame)
            if atom is None or atom.columns is None:
                return None
            slot += atom.literal_count
            for column in atom.columns:
                known = columns.get(column.ref)
                if known is not None:
                    predicates = known.predicates + column.predicates
                    joined = bound_column(column.place, column.ref, column.column, predicates, slots)
                    if joined is None:
                        return None
                    column = joined
                columns[column.ref] = column
        return sorted(columns.values())

    def _placed_atom(self, origin: str, text: str, slot: int, frame: Outline) -> PlacedAtom | None:
        key = (origin, text, str(slot))
        placed = self._placed.get(key)
        if placed is None:
            atom = self._atoms.get((origin, text))
            if isinstance(atom, Atom):
                slots = range(slot + atom.literal_count)
                columns = bound_columns(AllOf(atom.behind(slot)), frame.tables, slots)
                placed = PlacedAtom(columns, atom.literal_count)
                self._placed.store(key, placed)
        return placed

    def _read_parts(self, parts: Parts, frame: Outline | NoPart | None) -> tuple[Outline, list[Atom]] | None:
        """Frame and atoms, those parsed that are worth it; None if one is refused, or if there are too many new ones."""
        frame_key = (parts.head, parts.tail)
        keys = [(parts.origin, text) for text in parts.atoms]
        known = [self._atoms.get(key) for key in keys]
        if frame is NoPart.REFUSED or NoPart.REFUSED in known:
            return None
        if known.count(None) + (frame is None) > 1:
            # One part takes less time to parse than the whole. Several may not, and may never be met again.
            self._note(frame_key, keys)
            return None
        atoms: list[Atom] = []
        for key, atom in zip(keys, known, strict=True):
            if atom is None or atom is NoPart.SEEN:
                atom = self._read_atom(*key)
                self._atoms.store(key, atom)
            if isinstance(atom, NoPart):
                return None
            atoms.append(atom)
        if frame is None or frame is NoPart.SEEN:
            frame = self._read_frame(parts)
            self._frames.store(frame_key, frame)
        return None if isinstance(frame, NoPart) else (frame, atoms)

    def _note(self, frame_key: tuple[str, str], atom_keys: list[tuple[str, str]]) -> None:
        """Remembers the new parts of a statement that is parsed as a whole."""
        if self._frames.get(frame_key) is None:
            self._frames.store(frame_key, NoPart.SEEN)
        for key in atom_keys:
            if self._atoms.get(key) is None:
                self._atoms.store(key, NoPart.SEEN)

    def _read_atom(self, origin: str, text: str) -> Atom | NoPart:
        head = f"SELECT * {origin} WHERE "
        query = self._read(head + _with_examples(text))
        if query is None:
            return NoPart.REFUSED
        starts = _starts(text, len(head))
        used = {operand.start for predicate in query.predicates for operand in predicate.operands}
        if sorted(query.scope.source.literal_spans) != starts or used - {-1} != set(starts):
            return NoPart.REFUSED
        slots = {-1: -1} | {start: slot for slot, start in enumerate(starts)}
        return Atom(tuple([_bare(condition, slots) for condition in query.condition.parts]), len(starts))

    def _read_frame(self, parts: Parts) -> Outline | NoPart:
        """Reads a frame around its first atom: a table of constraints takes no statement without a condition."""
        head, text = f"{parts.head} WHERE ", parts.atoms[0]
        query = self._read(f"{head}{_with_examples(text)} {parts.tail}")
        if query is None:
            return NoPart.REFUSED
        literals = query.scope.source.literal_spans.keys() - query.structural_starts
        return outline_of(query) if sorted(literals) == _starts(text, len(head)) else NoPart.REFUSED

    def _read(self, sql: str) -> Query | None:
        """The query, if it is accepted and has neither a movement nor conditions outside of WHERE."""
        try:
            query = read_query(sql, self._catalog)
        except (SqlError, RecursionError):
            return None
        return None if query.movement is not None or query.has_on_conditions else query


class _Level:
    """The WHERE clause, or a parenthesis that stands where an operand of AND and OR does, while it is read."""

    __slots__ = ("alternatives", "begin", "betweens", "inner", "inner_end")

    def __init__(self, begin: int) -> None:
        self.alternatives: Clause = [[]]
        self.begin = begin
        """Where the operand that is being read begins."""
        self.betweens = 0
        """How many BETWEENs of it have yet to meet their AND."""
        self.inner: Clause | None = None
        """What is in the parentheses that it began with, which ended at `inner_end`."""
        self.inner_end = 0

    def end_operand(self, text: str, end: int, next_begin: int) -> None:
        if self.inner is not None and not text[self.inner_end : end].strip():
            self.alternatives[-1].append(self.inner)
        else:
            self.alternatives[-1].append(text[self.begin : end].strip())
        self.inner = None
        self.begin = next_begin
        self.betweens = 0


def taken_apart(text: str) -> Parts | None:
    """The parts of a skeleton; None if it has no WHERE, has literals elsewhere, or looks unusual."""
    origin = -1
    for match in _HEAD_MARKS.finditer(text):
        word = match[0].lower()
        if word == "where":
            break
        if word == "from" and origin < 0:
            origin = match.start()
    else:
        return None
    where, begin = match.span()
    found = _where_clause(text, begin)
    if found is None or origin < 0 or "'" in text:
        return None
    clause, end = found
    head, tail, atoms = text[:where].strip(), text[end:].strip(), _atoms_of(clause)
    if not all(atoms) or _LITERAL.search(head) or _LITERAL.search(tail):
        return None
    return Parts(head, text[origin:where].strip(), clause, tail, atoms)


def _where_clause(text: str, begin: int) -> tuple[Clause, int] | None:
    """The clause that begins behind WHERE, and where it ends."""
    level = _Level(begin)
    outer: list[_Level] = []
    operands = 1
    depth = 0  # of the parentheses within an operand
    end = len(text)
    for match in _WHERE_MARKS.finditer(text, begin):
        mark = match[0]
        if mark == "(":
            if depth or text[level.begin : match.start()].strip():
                depth += 1
            else:
                outer.append(level)
                level = _Level(match.end())
            if depth + len(outer) > DEPTH_MAX:
                return None
        elif mark == ")":
            if depth:
                depth -= 1
            elif outer:
                level.end_operand(text, match.start(), match.end())
                inner, level = level, outer.pop()
                level.inner, level.inner_end = inner.alternatives, match.end()
            else:
                return None
        elif not depth and mark[0] not in '."':
            word = mark.lower()
            if word == "between":
                level.betweens += 1
            elif word == "and" and level.betweens:
                level.betweens -= 1
            elif word in ("and", "or"):
                level.end_operand(text, match.start(), match.end())
                if word == "or":
                    level.alternatives.append([])
                operands += 1
                if operands > ATOMS_MAX:
                    return None
            else:
                end = match.start()
                break
    if outer or depth:
        return None
    level.end_operand(text, end, end)
    return level.alternatives, end


def _atoms_of(clause: Clause) -> list[str]:
    """The atoms of a clause, from left to right."""
    found: list[str] = []
    for operands in clause:
        for operand in operands:
            found += (operand,) if isinstance(operand, str) else _atoms_of(operand)
    return found


def _joined(clause: Clause, conditions: Iterator[tuple[Condition, ...]]) -> list[Condition]:
    """The conditions of a clause, joined by AND, as `normalize` orders and joins them. conditions: those of its atoms.

    The several comparisons of a geometric condition are joined with those beside it, which changes nothing.
    """
    alternatives: list[list[Condition]] = []
    for operands in clause:
        joined: list[Condition] = []
        for operand in operands:
            joined += next(conditions) if isinstance(operand, str) else _joined(operand, conditions)
        alternatives.append(joined)
    if len(alternatives) == 1:
        return alternatives[0]
    parts: list[Condition] = []
    for joined in alternatives:
        if len(joined) > 1:
            parts.append(AllOf(tuple(joined)))
        else:
            parts += joined[0].parts if isinstance(joined[0], AnyOf) else joined
    return [AnyOf(tuple(parts))]


def _marked(cut: Cut) -> str:
    """The skeleton with a mark of its kind for each literal."""
    first, *others = cut.skeleton.split(HOLE)
    marks = [_STRING if literal[0] == "'" else _NUMBER for literal in cut.literals]
    return first + "".join([mark + other for mark, other in zip(marks, others, strict=True)])


def _with_examples(text: str) -> str:
    """Text with a literal for each mark."""
    return text.replace(_NUMBER, _EXAMPLES[_NUMBER]).replace(_STRING, _EXAMPLES[_STRING])


def _starts(text: str, offset: int) -> list[int]:
    """Where the literals of `_with_examples(text)` start if it stands at the offset."""
    starts: list[int] = []
    for match in _LITERAL.finditer(text):
        starts.append(offset + match.start())
        offset += len(_EXAMPLES[match[0]]) - 1
    return starts


def _bare(condition: Condition, slots: dict[int, int]) -> Condition:
    """The condition without syntax trees, its operands starting at the slots of their literals."""
    if isinstance(condition, Predicate):
        operands = [operand._replace(start=slots[operand.start], node=_NO_NODE) for operand in condition.operands]
        return condition._replace(operands=tuple(operands), node=_NO_NODE)
    return type(condition)(tuple([_bare(part, slots) for part in condition.parts]))


def _shifted(condition: Condition, by: int) -> Condition:
    """The condition with operands that start later."""
    if not isinstance(condition, Predicate):
        return type(condition)(tuple([_shifted(part, by) for part in condition.parts]))
    ref, column, comparison, operands, node = condition
    shifted = [
        Operand(kind, start + by if start >= 0 else start, negative, boolean, node)
        for kind, start, negative, boolean, _ in operands
    ]
    return Predicate(ref, column, comparison, tuple(shifted), node)
