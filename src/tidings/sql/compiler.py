"""Subscriptions' SQL to shapes and constants: parse a template once, bind the rest in microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tidings.model.catalog import Catalog
from tidings.model.errors import SqlError
from tidings.sql.constants import Constants
from tidings.sql.fingerprint import Cut, careful_cut, fast_cut, fast_spans, is_cacheable, needs_care
from tidings.sql.length import check_length, check_literals
from tidings.sql.literals import LiteralError
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.sql.disjuncts.conjunctions import DisjunctTemplate
    from tidings.sql.template import Draft, Template

    AnyTemplate = Template | DisjunctTemplate

Clause = Literal["from", "join", "order", "movement", "alternative"]
Spans = list[tuple[int, int]]

_SKELETON_CHARACTERS_MAX = 1_000_000
"""Templates of one generation have at most so many characters of skeletons: their memory grows with these."""
_CHARACTER_BYTES, _TEMPLATE_BYTES = 100, 1_000
"""Approximate bytes of a template for each character of its skeleton, and beyond."""


class Statement:
    """A compiled subscription: its shape, its constants and the text they came from."""

    __slots__ = ("_catalog", "constants", "shape", "sql")

    def __init__(self, shape: Shape, constants: Constants, sql: str, catalog: Catalog) -> None:
        self.shape = shape
        self.constants = constants
        self.sql = sql
        self._catalog = catalog

    def where(self, clause: Clause) -> tuple[int, int, str]:
        """Line, column (both from 1) and text of a clause, for errors of later stages; of the FROM if it is absent."""
        from tidings.sql.clauses import place_of_clause

        return place_of_clause(self.sql, self._catalog, clause)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Statement):
            return NotImplemented
        return self.shape == other.shape and self.constants == other.constants

    def __hash__(self) -> int:
        return hash((self.shape, self.constants))

    def __repr__(self) -> str:
        return f"Statement({self.shape.describe()!r}, {self.constants!r})"


class Compiler:
    """Compiles subscriptions over one catalog; keeps templates it has seen: `templates_max` of them, or fewer large ones.

    The cache has two generations: templates found in the old one move to the young one, and when the young one is full
    it becomes the old. So the least used are dropped, hits write nothing, and threads may share a compiler (at worst
    two of them parse the same template).
    """

    def __init__(self, catalog: Catalog, templates_max: int = 10_000) -> None:
        self.catalog = catalog
        self._generation_max = templates_max // 2
        self._young: dict[str | tuple[str], AnyTemplate] = {}
        self._old: dict[str | tuple[str], AnyTemplate] = {}
        self._young_characters = self._old_characters = 0
        self._shapes: dict[Shape, Shape] = {}
        """Shapes of templates by themselves, so that equal ones are one object. Forgotten when there are too many."""
        self._shapes_max = max(1, templates_max)

    @property
    def nbytes(self) -> int:
        """Approximate bytes of the templates kept."""
        templates = len(self._young) + len(self._old)
        return _TEMPLATE_BYTES * templates + _CHARACTER_BYTES * (self._young_characters + self._old_characters)

    def compile(self, sql: str) -> Statement:
        """Compiles a subscription. Raises SqlError, and no other exception, if the text is not supported."""
        check_length(sql)
        skeleton, literals = fast_cut(sql)
        template = self._young.get(skeleton) or self._from_old(skeleton)
        if template is not None and template.literal_count == len(literals):
            try:
                shape, constants = template.bind(literals)
                return Statement(shape, constants, sql, self.catalog)
            except LiteralError:
                return self._parse(sql)[1]
        check_literals(len(literals))
        if needs_care(skeleton):
            return self._compile_carefully(sql)
        draft, statement = self._parse(sql)
        cut = Cut(skeleton, literals)
        if is_cacheable(cut) and draft.spans == fast_spans(cut):
            self._store(skeleton, draft.template)
        return statement

    def _compile_carefully(self, sql: str) -> Statement:
        """As `compile`, for text with comments, quoted identifiers or silent_for."""
        found = careful_cut(sql)
        if found is None:
            return self._parse(sql)[1]
        cut, spans = found
        key = (cut.skeleton,)
        template = self._young.get(key) or self._from_old(key)
        if template is not None and template.literal_count == len(cut.literals):
            try:
                shape, constants = template.bind(cut.literals)
                return Statement(shape, constants, sql, self.catalog)
            except LiteralError:
                return self._parse(sql)[1]
        draft, statement = self._parse(sql)
        if is_cacheable(cut) and draft.spans == spans:
            self._store(key, draft.template)
        return statement

    def _parse(self, sql: str) -> tuple[Draft, Statement]:
        """Compile without the cache."""
        from tidings.sql.template import Draft  # sqlglot takes long to import: only when there is something to parse

        try:
            draft = Draft(sql, self.catalog)
            if len(self._shapes) >= self._shapes_max:
                self._shapes.clear()
            draft.template.shape = self._shapes.setdefault(draft.template.shape, draft.template.shape)
            shape, constants = draft.bind()
        except RecursionError:
            raise SqlError("the statement is nested too deep", hint="use fewer parentheses and operators") from None
        return draft, Statement(shape, constants, sql, self.catalog)

    def _from_old(self, key: str | tuple[str]) -> AnyTemplate | None:
        template = self._old.get(key)
        if template is not None:
            self._store(key, template)
        return template

    def _store(self, key: str | tuple[str], template: AnyTemplate) -> None:
        characters = len(key if isinstance(key, str) else key[0])
        is_full = self._young_characters + characters > _SKELETON_CHARACTERS_MAX
        if is_full or len(self._young) >= self._generation_max:
            self._old, self._young = self._young, {}
            self._old_characters, self._young_characters = self._young_characters, 0
        if self._generation_max > 0:
            self._young[key] = template
            self._young_characters += characters
