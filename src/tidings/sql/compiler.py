"""Subscriptions' SQL to shapes and constants: parse a template once, bind the rest in microseconds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal

from tidings.model.catalog import Catalog
from tidings.model.errors import SqlError
from tidings.sql.constants import Constants
from tidings.sql.fingerprint import Cut, careful_cut, fast_cut, fast_spans, is_cacheable, needs_care
from tidings.sql.generations import Generations
from tidings.sql.length import check_length, check_literals
from tidings.sql.literals import LiteralError
from tidings.sql.shape import Shape

if TYPE_CHECKING:
    from tidings.sql.compose import Composer
    from tidings.sql.disjuncts.conjunctions import DisjunctTemplate
    from tidings.sql.template import Draft, Template

    AnyTemplate = Template | DisjunctTemplate

Clause = Literal["from", "join", "order", "movement", "alternative"]
Spans = list[tuple[int, int]]

_SKELETON_CHARACTERS_MAX = 1_000_000
"""Templates of one generation have at most so many characters of skeletons: their memory grows with these. Parts a quarter."""


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

    The template of a new skeleton is put together from parts of earlier ones if these suffice (`tidings.sql.compose`), of
    which as many are kept; else the text is parsed. Threads may share a compiler: at worst two of them make the same template.
    """

    def __init__(self, catalog: Catalog, templates_max: int = 10_000) -> None:
        self.catalog = catalog
        self._templates_max = templates_max
        self._templates: Generations[str | tuple[str, ...], AnyTemplate] = Generations(
            templates_max, _SKELETON_CHARACTERS_MAX
        )
        """By skeleton, in a tuple if it is of a careful cut."""
        self._composer: Composer | None = None
        self._shapes: dict[Shape, Shape] = {}
        """Shapes of templates by themselves, so that equal ones are one object. Forgotten when there are too many."""
        self._shapes_max = max(1, templates_max)

    @property
    def nbytes(self) -> int:
        """Approximate bytes of the templates and parts kept."""
        return self._templates.nbytes + (self._composer.nbytes if self._composer is not None else 0)

    def compile(self, sql: str) -> Statement:
        """Compiles a subscription. Raises SqlError, and no other exception, if the text is not supported."""
        check_length(sql)
        skeleton, literals = fast_cut(sql)
        templates = self._templates
        template = templates.young.get(skeleton) or templates.from_old(skeleton)
        if template is not None and template.literal_count == len(literals):
            try:
                shape, constants = template.bind(literals)
                return Statement(shape, constants, sql, self.catalog)
            except LiteralError:
                return self._parse(sql)[1]
        check_literals(len(literals))
        if needs_care(skeleton):
            return self._compile_carefully(sql)
        return self._compile_new(sql, skeleton, Cut(skeleton, literals), None)

    def _compile_carefully(self, sql: str) -> Statement:
        """As `compile`, for text with comments, quoted identifiers or silent_for."""
        found = careful_cut(sql)
        if found is None:
            return self._parse(sql)[1]
        cut, spans = found
        key = (cut.skeleton,)
        template = self._templates.get(key)
        if template is not None and template.literal_count == len(cut.literals):
            try:
                shape, constants = template.bind(cut.literals)
                return Statement(shape, constants, sql, self.catalog)
            except LiteralError:
                return self._parse(sql)[1]
        return self._compile_new(sql, key, cut, spans)

    def _compile_new(self, sql: str, key: str | tuple[str, ...], cut: Cut, spans: Spans | None) -> Statement:
        """As `compile`, where no template fits; makes one, of parts if possible. spans: None for those of a fast cut."""
        is_kept = is_cacheable(cut) and self._templates_max > 0
        template = self._composed(cut) if is_kept else None
        if template is not None:
            self._share_shape(template)
            try:
                shape, constants = template.bind(cut.literals)
            except LiteralError:
                return self._parse(sql)[1]
            self._templates.store(key, template)
            return Statement(shape, constants, sql, self.catalog)
        draft, statement = self._parse(sql)
        if is_kept and draft.spans == (fast_spans(cut) if spans is None else spans):
            self._templates.store(key, draft.template)
        return statement

    def _composed(self, cut: Cut) -> AnyTemplate | None:
        if self._composer is None:
            from tidings.sql.compose import Composer  # imports sqlglot

            self._composer = Composer(self.catalog, self._templates_max, _SKELETON_CHARACTERS_MAX // 4)
        return self._composer.template(cut)

    def _parse(self, sql: str) -> tuple[Draft, Statement]:
        """Compile without the cache."""
        from tidings.sql.template import Draft  # sqlglot takes long to import: only when there is something to parse

        try:
            draft = Draft(sql, self.catalog)
            self._share_shape(draft.template)
            shape, constants = draft.bind()
        except RecursionError:
            raise SqlError("the statement is nested too deep", hint="use fewer parentheses and operators") from None
        return draft, Statement(shape, constants, sql, self.catalog)

    def _share_shape(self, template: AnyTemplate) -> None:
        if len(self._shapes) >= self._shapes_max:
            self._shapes.clear()
        template.shape = self._shapes.setdefault(template.shape, template.shape)
