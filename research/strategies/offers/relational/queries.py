"""The queries: predicates that can both hold, for each pair of operators in use, and the count of attributes over all of these.

The counting query as published groups by attribute, and so compares the count of one attribute with that of all. Here it
counts the attributes of each pair of disjuncts. A disjunct has one predicate for each attribute, so that no attribute is found
twice for a pair of disjuncts: COUNT(*) is COUNT(DISTINCT field), which databases take much longer for.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import product
from typing import NamedTuple

from research.strategies.offers.relational.dialect import Dialect
from research.strategies.offers.relational.operators import KINDS, comparisons_of


class Side(NamedTuple):
    """The tables of one side. letter: what its columns begin with."""

    word: str
    letter: str

    @property
    def master(self) -> str:
        return f"{self.word}_master"

    @property
    def id(self) -> str:
        return f"{self.letter}_id"

    @property
    def disjunct(self) -> str:
        return f"{self.letter}_disjunct"

    def predicates(self, kind: str) -> str:
        """The table of predicates on values of a kind."""
        return f"{kind}_{self.word}s"


PUBLICATIONS = Side("pub", "p")
SUBSCRIPTIONS = Side("sub", "s")


class Pair(NamedTuple):
    """Operators of a publication's and of a subscription's predicates, on values of a kind."""

    kind: str
    publication: str
    subscription: str


def used_operators_query(side: Side, kinds: Iterable[str] = KINDS, prefix: str = "") -> str:
    """Finds (kind, op): the operators that one side's predicates have. prefix: of all names of tables."""
    parts = (f"SELECT DISTINCT '{kind}' AS kind, op FROM {prefix}{side.predicates(kind)}" for kind in kinds)
    return "\nUNION ALL\n".join(parts)


def pairs_in_use(publications: Iterable[tuple[str, str]], subscriptions: Iterable[tuple[str, str]]) -> list[Pair]:
    """The pairs that need a query, given what `used_operators_query` found for both sides."""
    operators = sorted(set(subscriptions))
    return [
        Pair(kind, ours, theirs)
        for (kind, ours), (other, theirs) in product(sorted(set(publications)), operators)
        if kind == other
    ]


def pair_query(pair: Pair, dialect: Dialect, prefix: str = "") -> str:
    """Finds (p_id, p_disjunct, s_id, s_disjunct, field): predicates with these operators that can both hold."""
    conditions = " AND ".join(["s.field = p.field", *_conditions(pair, dialect)])
    operators = f"p.op = '{pair.publication}' AND s.op = '{pair.subscription}'"
    return f"{_joined(pair.kind, prefix)} ON {conditions} WHERE {operators}"


def pair_queries(pairs: Iterable[Pair], dialect: Dialect, prefix: str = "") -> list[str]:
    """Queries that together find what `pair_query` finds for each of the pairs."""
    apart: list[Pair] = []
    together: dict[str, list[Pair]] = {}
    for pair in pairs:
        if dialect.has_indexes or _is_equality(pair):
            apart.append(pair)
        else:
            together.setdefault(pair.kind, []).append(pair)
    return [
        *(pair_query(pair, dialect, prefix) for pair in apart),
        *(either_query(kind, members, dialect, prefix) for kind, members in together.items()),
    ]


def either_query(kind: str, pairs: Iterable[Pair], dialect: Dialect, prefix: str = "") -> str:
    """As `pair_query`, for several pairs of a kind: one join whose conditions are joined by OR."""
    conditions = " OR ".join(
        " AND ".join([f"p.op = '{pair.publication}'", f"s.op = '{pair.subscription}'", *_conditions(pair, dialect)])
        for pair in pairs
    )
    return f"{_joined(kind, prefix)} ON s.field = p.field AND ({conditions})"


def _joined(kind: str, prefix: str) -> str:
    tables = (f"{prefix}{side.predicates(kind)} {side.letter}" for side in (PUBLICATIONS, SUBSCRIPTIONS))
    return f"SELECT p.p_id, p.p_disjunct, s.s_id, s.s_disjunct, p.field FROM {' JOIN '.join(tables)}"


def _is_equality(pair: Pair) -> bool:
    """Whether both sides have a single value, so that rows can be joined by a hash of it."""
    return pair.publication == pair.subscription == "="


def _conditions(pair: Pair, dialect: Dialect) -> list[str]:
    """On rows p and s with these operators; none if they can always both hold."""
    kind = KINDS[pair.kind]
    candidates = dialect.candidates(kind, pair.publication, pair.subscription)
    found = [] if candidates is None else [candidates]
    for one in comparisons_of(kind, pair.publication, pair.subscription):
        left, right = ("p", "s") if one.is_publication_left else ("s", "p")
        found.append(f"{dialect.value(kind, left, one.left)} {one.operator} {dialect.value(kind, right, one.right)}")
    return found


def match_query(pairs: Sequence[Pair], dialect: Dialect, *, is_classic: bool = False, prefix: str = "") -> str:
    """Finds (p_id, s_id), each once: the constraints that match, if these pairs of operators are all that are in use.

    is_classic: all attributes of the subscription must be found, instead of all of the publication.
    """
    if not pairs:
        masters = f"{prefix}{PUBLICATIONS.master} p CROSS JOIN {prefix}{SUBSCRIPTIONS.master} s"
        return f"SELECT p.p_id, s.s_id FROM {masters} WHERE 1 = 0"
    met = "\n    UNION ALL\n    ".join(pair_queries(pairs, dialect, prefix))
    return count_query(f"(\n    {met}\n)", is_classic=is_classic, prefix=prefix)


def count_query(met: str, *, is_classic: bool = False, prefix: str = "") -> str:
    """Finds (p_id, s_id) of constraints that match. met: a table, or a query in brackets, of what `pair_query` finds."""
    counted = SUBSCRIPTIONS if is_classic else PUBLICATIONS
    id, disjunct = counted.id, counted.disjunct
    return (
        f"SELECT DISTINCT met.p_id, met.s_id\nFROM {met} met"
        f"\nJOIN {prefix}{counted.master} whole ON whole.{id} = met.{id} AND whole.{disjunct} = met.{disjunct}"
        "\nGROUP BY met.p_id, met.p_disjunct, met.s_id, met.s_disjunct, whole.count"
        "\nHAVING COUNT(*) = whole.count"
    )
