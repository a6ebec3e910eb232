"""The places workload: couriers, shops and depots offer goods somewhere, and people look for what reaches them.

Everything lies in a square of 100 km with thirty towns, of which some are much larger. Three kinds of offers, each with a
category and mostly a price:

- a courier delivers to any spot of a box: `within(spot, box(..))`, found by `spot = point(..)`;
- a shop sells at its spot: `spot = point(..)`, found by `within(spot, box(..))`;
- a depot serves an area: `area = box(..)`, found by `overlaps`, `contains` and `within`.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from itertools import accumulate, islice

from research.workloads.offers.life import OfferLife
from tidings.workloads.draws import zipf
from tidings.workloads.subscribers import coming_and_going, steady
from tidings.workloads.workload import WorkloadLines

TABLE = "deliveries"
CATALOG_SQL = f"CREATE TABLE {TABLE} (area BOX, spot POINT, category TEXT, price DOUBLE) WITH (rows = 'constraints');\n"
SIDE_KM = 100.0

_OFFERS_MAX = 20_000
_TOWNS = 30
_TOWN_KM = 1.5
"""Standard deviation of the distance between a town's centre and those who live there."""
_STEP_KM = 0.3
_FREE = 0.1
"""Share of the offers without a price, which also match those who ask for none."""
_CATEGORIES = ("meals", "groceries", "parcels", "flowers", "medicine", "books", "laundry", "tools", "wine", "furniture")
_CATEGORY_POPULARITY = list(accumulate(zipf(len(_CATEGORIES), 1.0, 1.0).tolist()))

# (share, condition). Shares need not sum to anything; names in braces are made in `_look`.
_CONDITIONS: tuple[tuple[float, str], ...] = (
    # who delivers to my door
    (30, "spot = {home} AND category = '{category}' AND price <= {limit}"),
    (8, "spot = {home} AND category IN ({categories}) AND price < {limit}"),
    (10, "spot = {home} AND category = '{category}' AND price BETWEEN 0.00 AND {limit} ORDER BY price LIMIT 3"),
    (3, "spot = {home} AND category = '{category}'"),
    # shops around me
    (14, "within(spot, {near}) AND category = '{category}' AND price <= {limit}"),
    (5, "within(spot, {near}) AND category = '{category}' AND price BETWEEN 0.00 AND {limit} ORDER BY price LIMIT 5"),
    # depots that serve my surroundings, my whole garden, or nothing but my town
    (10, "overlaps(area, {near}) AND category = '{category}' AND price <= {limit}"),
    (7, "contains(area, {garden}) AND category IN ({categories}) AND price <= {limit}"),
    (4, "within(area, {town}) AND category = '{category}' AND price BETWEEN {low} AND {limit}"),
    # any of these
    (5, "(spot = {home} OR contains(area, {garden})) AND category = '{category}' AND price <= {limit}"),
    (4, "within(spot, {near}) AND overlaps(area, {near}) AND category <> '{category}' AND price <= {low}"),
)


def offers_places(
    *, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000, has_churn: bool = True
) -> WorkloadLines:
    """The whole workload: `rows` offers at the start, which then move, change their prices and are replaced.

    With churn a tenth of the subscriptions is created later and a tenth is dropped, each after a change of its own.
    """
    offers = rows or max(20, min(_OFFERS_MAX, changes // 5))
    land = Land.make(seed)
    asked = queries(land, seed)
    if has_churn:
        lines = coming_and_going(asked, subscriptions, range(offers, changes), seed)
    else:
        lines = steady(asked, subscriptions)
    life = OfferLife(TABLE, partial(_new_offer, land), offers, seed)
    return WorkloadLines(CATALOG_SQL, lines, islice(life.lines(), changes))


@dataclass(frozen=True)
class Land:
    """Towns, the largest first: centres in km."""

    towns: list[tuple[float, float]]
    popularity: list[float]
    """Running sum of the towns' shares of people."""

    @staticmethod
    def make(seed: int) -> Land:
        rng = random.Random(f"{TABLE} land {seed}")
        margin = 5 * _TOWN_KM
        towns = [(rng.uniform(margin, SIDE_KM - margin), rng.uniform(margin, SIDE_KM - margin)) for _ in range(_TOWNS)]
        return Land(towns, list(accumulate(zipf(_TOWNS, 1.0, 1.0).tolist())))

    def place(self, rng: random.Random) -> tuple[float, float]:
        """Somewhere in a town."""
        x, y = rng.choices(self.towns, cum_weights=self.popularity)[0]
        return _inside(rng.gauss(x, _TOWN_KM)), _inside(rng.gauss(y, _TOWN_KM))


@dataclass(frozen=True)
class PlaceOffer:
    """An offer around (x, y); width and height are those of its box."""

    kind: str
    """courier, shop or depot."""
    x: float
    y: float
    width: float
    height: float
    goods: str
    """The part of the constraint about the category."""
    price: float
    is_free: bool

    @property
    def where(self) -> str:
        place = f"spot = {_point(self.x, self.y)}"
        if self.kind != "shop":
            box = _box(self.x, self.y, self.width, self.height)
            place = f"within(spot, {box})" if self.kind == "courier" else f"area = {box}"
        if self.is_free:
            return f"{place} AND {self.goods}"
        # A shop has goods of this price and above.
        return f"{place} AND {self.goods} AND price {'>=' if self.kind == 'shop' else '='} {self.price:.2f}"

    def changed(self, rng: random.Random) -> PlaceOffer:
        """With another price, or, if it does not stand still, some steps away."""
        if self.kind == "shop" or rng.random() < 0.4:
            return replace(self, price=self.price * rng.lognormvariate(0.0, 0.15))
        x, y = _inside(rng.gauss(self.x, _STEP_KM)), _inside(rng.gauss(self.y, _STEP_KM))
        return replace(self, x=x, y=y)


def _new_offer(land: Land, rng: random.Random) -> PlaceOffer:
    kind = rng.choices(("courier", "shop", "depot"), (5, 2, 3))[0]
    category, cost = _goods(rng)
    goods = f"category = '{category}'"
    if kind == "shop" and rng.random() < 0.5:
        goods = f"category IN ({_with_others(rng, category)})"
    size = 5.0 if kind == "depot" else 2.0
    width, height = _length(rng, size), _length(rng, size)
    return PlaceOffer(kind, *land.place(rng), width, height, goods, cost, rng.random() < _FREE)


def queries(land: Land, seed: int) -> Iterator[str]:
    """Endless SQL queries; the first n do not depend on n."""
    rng = random.Random(f"{TABLE} queries {seed}")
    shares, conditions = [share for share, _ in _CONDITIONS], [condition for _, condition in _CONDITIONS]
    while True:
        for condition in rng.choices(conditions, shares, k=100):
            yield f"SELECT * FROM {TABLE} WHERE {condition.format_map(_look(land, rng))}"


def _look(land: Land, rng: random.Random) -> dict[str, str]:
    """Values for the names in a condition's braces: a home, boxes around it, and what is wanted at which price."""
    x, y = land.place(rng)
    category, cost = _goods(rng)
    return {
        "home": _point(x, y),
        "garden": _box(x, y, 0.02, 0.02),
        "near": _box(x, y, _length(rng, 1.5), _length(rng, 1.5)),
        "town": _box(x, y, _length(rng, 12.0), _length(rng, 12.0)),
        "category": category,
        "categories": _with_others(rng, category),
        "low": f"{0.5 * cost:.2f}",
        "limit": f"{cost:.2f}",
    }


def _goods(rng: random.Random) -> tuple[str, float]:
    """A category, and a price that suits it."""
    rank = rng.choices(range(len(_CATEGORIES)), cum_weights=_CATEGORY_POPULARITY)[0]
    return _CATEGORIES[rank], 4.0 * 1.4**rank * rng.lognormvariate(0.0, 0.4)


def _with_others(rng: random.Random, category: str) -> str:
    found = dict.fromkeys([category, *(rng.choice(_CATEGORIES) for _ in range(rng.randint(1, 2)))])
    return ", ".join(f"'{one}'" for one in found)


def _length(rng: random.Random, usual: float) -> float:
    """About the usual length, in km."""
    return usual * min(4.0, max(0.25, rng.lognormvariate(0.0, 0.4)))


def _inside(coordinate: float) -> float:
    return min(SIDE_KM, max(0.0, coordinate))


def _point(x: float, y: float) -> str:
    return f"point({x:.3f}, {y:.3f})"


def _box(x: float, y: float, width: float, height: float) -> str:
    """The box around (x, y), as far as it lies in the square. Lengths are such that corners differ when written in metres."""
    left, below = _inside(x - width / 2), _inside(y - height / 2)
    right, above = _inside(x + width / 2), _inside(y + height / 2)
    return f"box({left:.3f}, {below:.3f}, {right:.3f}, {above:.3f})"
