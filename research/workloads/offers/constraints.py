"""Constraints of the marketplace: on one to three attributes, popular ones more often, with predicates that suit the types."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import accumulate

from research.workloads.offers.attributes import ATTRIBUTES, PRICE, Attribute
from tidings.workloads.draws import zipf

Predicate = Callable[[Attribute, random.Random], str]

_OR = 0.08
"""Share of the constraints with OR."""
_HALF_OPEN = 0.2
"""Share of the ranges without their upper end."""
_POPULARITY = list(accumulate(zipf(len(ATTRIBUTES), 1.3, 1.0).tolist()))
_TEXTS = [one for one in ATTRIBUTES if one.type == "TEXT"]
_TEXT_POPULARITY = list(accumulate(zipf(len(_TEXTS), 1.3, 1.0).tolist()))
_PREFIX = 2
"""Characters of the prefixes in LIKE."""


def _equal(attribute: Attribute, rng: random.Random) -> str:
    return f"{attribute.name} = {attribute.literal(rng.random())}"


def _different(attribute: Attribute, rng: random.Random) -> str:
    return f"{attribute.name} <> {attribute.literal(rng.random())}"


def _listed(attribute: Attribute, rng: random.Random) -> str:
    values = dict.fromkeys(attribute.literal(rng.random()) for _ in range(rng.randint(2, 5)))
    return f"{attribute.name} IN ({', '.join(values)})"


def _prefixed(attribute: Attribute, rng: random.Random) -> str:
    quote_and_prefix = attribute.literal(rng.random())[: 1 + _PREFIX]
    return f"{attribute.name} LIKE {quote_and_prefix}%'"


def _at_least(attribute: Attribute, rng: random.Random) -> str:
    return f"{attribute.name} {rng.choice(('>=', '>'))} {attribute.literal(rng.uniform(0.3, 0.9))}"


def _at_most(attribute: Attribute, rng: random.Random) -> str:
    return f"{attribute.name} {rng.choice(('<=', '<'))} {attribute.literal(rng.uniform(0.1, 0.7))}"


def _narrow(attribute: Attribute, rng: random.Random) -> str:
    return _between(attribute, rng, 0.1)


def _wide(attribute: Attribute, rng: random.Random) -> str:
    return _between(attribute, rng, 0.4)


def _between(attribute: Attribute, rng: random.Random, width_max: float) -> str:
    width = rng.uniform(0.01, width_max)
    at = rng.uniform(0.0, 1.0 - width)
    low, high = attribute.literal(at), attribute.literal(at + width)
    # With equal ends a half-open range is empty.
    if rng.random() < _HALF_OPEN and low != high:
        return f"{attribute.name} >= {low} AND {attribute.name} < {high}"
    return f"{attribute.name} BETWEEN {low} AND {high}"


@dataclass(frozen=True)
class Side:
    """How publications or subscriptions are drawn. Shares need not sum to anything."""

    sizes: tuple[float, float, float]
    """Shares of constraints on one, two and three attributes."""
    predicates: dict[str, tuple[tuple[float, Predicate], ...]]
    """(share, predicate) by kind of type: text, flag or ordered."""
    has_no_lone_ranges: bool = False
    """Whether a constraint on one attribute alone is always on text."""

    def constraint(self, rng: random.Random) -> Constraint:
        attributes = _some(rng, rng.choices((1, 2, 3), self.sizes)[0])
        if self.has_no_lone_ranges and len(attributes) == 1:
            attributes = (rng.choices(_TEXTS, cum_weights=_TEXT_POPULARITY)[0],)
        has_or = rng.random() < _OR
        if has_or and len(attributes) < 3:
            attributes += attributes[-1:]
        return Constraint(self, attributes, tuple(self.predicate(one, rng) for one in attributes), has_or)

    def predicate(self, attribute: Attribute, rng: random.Random) -> str:
        kinds = self.predicates[_KIND.get(attribute.type, "ordered")]
        return rng.choices([make for _, make in kinds], [share for share, _ in kinds])[0](attribute, rng)


@dataclass(frozen=True)
class Constraint:
    side: Side
    attributes: tuple[Attribute, ...]
    """One to three, the last one twice if two of its predicates are joined by OR."""
    predicates: tuple[str, ...]
    """One for each of the attributes."""
    has_or: bool = False

    @property
    def where(self) -> str:
        if not self.has_or:
            return " AND ".join(self.predicates)
        *first, p, q = self.predicates
        return f"{first[0]} AND ({p} OR {q})" if first else f"{p} OR {q}"

    def changed(self, rng: random.Random) -> Constraint:
        """The same with another predicate on one of the attributes."""
        at = rng.randrange(len(self.attributes))
        predicates = list(self.predicates)
        predicates[at] = self.side.predicate(self.attributes[at], rng)
        return replace(self, predicates=tuple(predicates))


_KIND = {"TEXT": "text", "BOOLEAN": "flag"}
_FLAG = ((9.0, _equal), (1.0, _different))
PUBLISHED = Side(
    (0.06, 0.4, 0.54),
    {
        "text": ((80, _equal), (12, _listed), (5, _prefixed), (3, _different)),
        "flag": _FLAG,
        "ordered": ((55, _equal), (30, _narrow), (6, _at_least), (4, _at_most), (3, _listed), (2, _different)),
    },
    has_no_lone_ranges=True,
)
"""Sellers know what they have: mostly one value or a narrow range. `price >= 10` alone would match half of all buyers."""
SUBSCRIBED = Side(
    (0.15, 0.35, 0.5),
    {
        "text": ((62, _equal), (25, _listed), (7, _prefixed), (6, _different)),
        "flag": _FLAG,
        "ordered": (
            (25, _at_most),
            (15, _at_least),
            (25, _wide),
            (20, _narrow),
            (10, _equal),
            (3, _listed),
            (2, _different),
        ),
    },
)
"""Buyers leave more open: half-lines and wide ranges."""


def priced(rng: random.Random) -> Constraint:
    """A subscription with a range of prices, by which its matches can be ranked."""
    found = SUBSCRIBED.constraint(rng)
    others = [one for one in dict.fromkeys(found.attributes) if one is not PRICE][:2]
    predicates = (*(SUBSCRIBED.predicate(one, rng) for one in others), _wide(PRICE, rng))
    return Constraint(SUBSCRIBED, (*others, PRICE), predicates)


def _some(rng: random.Random, count: int) -> tuple[Attribute, ...]:
    """Distinct attributes, popular ones more often."""
    found: dict[str, Attribute] = {}
    while len(found) < count:
        one = rng.choices(ATTRIBUTES, cum_weights=_POPULARITY)[0]
        found[one.name] = one
    return tuple(found.values())
