"""The shapes workload: saved searches for homes, of a thousand different shapes, all on one table.

Every search has conditions on other columns and shows other columns. All searches are equally narrow, however few columns they
name: about one home in `1 / SELECTED` is in an answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from tidings.workloads.subscribers import coming_and_going, steady
from tidings.workloads.workload import WorkloadLines

CATALOG_SQL = """\
CREATE TABLE homes (id BIGINT PRIMARY KEY, city TEXT, kind TEXT, agent BIGINT, rooms INT, price DOUBLE, area DOUBLE, built INT,\
 fee DOUBLE, distance DOUBLE, noise DOUBLE, rating DOUBLE);
"""

SHAPES = 1_000
SELECTED = 0.000_3
"""Share of the homes in an answer, on average."""
_HOMES_MAX = 20_000
_AGENTS = 200
_CITIES = tuple(
    f"{name}{place}"
    for name in ("Ash", "Bel", "Cor", "Dun", "Elm", "Fox")
    for place in ("ford", "ton", "wick", "dale", "ham")
)
_KINDS = ("apartment", "house", "loft", "studio", "terrace")

Draw = Callable[[float], object]
"""share (0 to 1) -> the value at that share of the way from the lowest to the highest value."""

_EQUAL: dict[str, tuple[int, Draw]] = {
    "city": (len(_CITIES), lambda share: _CITIES[int(share * len(_CITIES))]),
    "kind": (len(_KINDS), lambda share: _KINDS[int(share * len(_KINDS))]),
    "agent": (_AGENTS, lambda share: 1 + int(share * _AGENTS)),
    "rooms": (8, lambda share: 1 + int(share * 8)),
}
"""Columns that are compared by =, with the number of their values: all are equally frequent."""
_RANGED: dict[str, Draw] = {
    "price": lambda share: round(100_000 * 30**share, 2),
    "area": lambda share: round(20 * 15**share, 1),
    "built": lambda share: 1850 + int(175 * share**0.5),
    "fee": lambda share: round(1_000 * share, 2),
    "distance": lambda share: round(40 * share, 2),
    "noise": lambda share: round(30 + 50 * share, 1),
    "rating": lambda share: round(10 * share, 2),
}
COLUMNS = ("id", *_EQUAL, *_RANGED)


def shapes(
    *, seed: int = 0, rows: int = 0, subscriptions: int = 100_000, changes: int = 100_000, has_churn: bool = True
) -> WorkloadLines:
    """The whole workload: `rows` homes at the start, which are then offered, changed and withdrawn.

    With churn a tenth of the subscriptions is created later and a tenth is dropped, each after a change of its own.
    """
    homes = rows or max(20, min(_HOMES_MAX, changes // 5))
    asked = queries(seed)
    if has_churn:
        lines = coming_and_going(asked, subscriptions, range(homes, changes), seed)
    else:
        lines = steady(asked, subscriptions)
    return WorkloadLines(CATALOG_SQL, lines, islice(_changes(seed, homes), changes))


@dataclass(frozen=True)
class _Shape:
    shown: str
    equal: tuple[str, ...]
    ranged: tuple[str, ...]


def queries(seed: int) -> Iterator[str]:
    """Endless SQL queries of `SHAPES` shapes; the first n do not depend on n."""
    rng = random.Random(f"shapes queries {seed}")
    known: dict[_Shape, None] = {}
    while len(known) < SHAPES:
        known[_new_shape(rng)] = None
    some = list(known)
    while True:
        yield _query(rng.choice(some), rng)


def _new_shape(rng: random.Random) -> _Shape:
    equal = _some(rng, tuple(_EQUAL), rng.choice((0, 1, 1, 1, 2, 2)))
    ranged = _some(rng, tuple(_RANGED), rng.choice((1, 2, 2, 3, 3, 4)))
    shown = "*" if rng.random() < 0.2 else ", ".join(_some(rng, COLUMNS, rng.randint(1, 6)))
    return _Shape(shown, equal, ranged)


def _some(rng: random.Random, columns: tuple[str, ...], count: int) -> tuple[str, ...]:
    """`count` random columns, in their order."""
    chosen = set(rng.sample(columns, count))
    return tuple(column for column in columns if column in chosen)


def _query(shape: _Shape, rng: random.Random) -> str:
    share, conditions = SELECTED, []
    for column in shape.equal:
        count, value = _EQUAL[column]
        share *= count
        conditions.append(f"{column} = {_constant(value(rng.random()))}")
    width = min(0.9, share ** (1 / len(shape.ranged)))
    for column in shape.ranged:
        at = rng.uniform(0.0, 1.0 - width)
        value_at = _RANGED[column]
        conditions.append(f"{column} BETWEEN {value_at(at)} AND {value_at(at + width)}")
    return f"SELECT {shape.shown} FROM homes WHERE {' AND '.join(conditions)}"


def _constant(value: object) -> str:
    return f"'{value}'" if isinstance(value, str) else str(value)


def _changes(seed: int, homes: int) -> Iterator[bytes]:
    """Inserts of all homes, then updates of one to three columns, with some inserts and deletes."""
    rng = random.Random(f"shapes changes {seed}")
    rows: dict[int, dict[str, object]] = {}
    there: list[int] = []
    seq = 0
    while True:
        seq += 1
        kind = rng.random() if seq > homes else 0.0
        if kind < 0.1 or len(there) < 2:
            id, op = seq, "insert"
            rows[id] = {column: _value(column, rng) for column in COLUMNS[1:]}
            there.append(id)
        elif kind < 0.2:
            op = "delete"
            at = rng.randrange(len(there))
            there[at], there[-1] = there[-1], there[at]
            id = there.pop()
            del rows[id]
        else:
            op = "update"
            id = rng.choice(there)
            for column in rng.sample(COLUMNS[1:], rng.randint(1, 3)):
                rows[id][column] = _value(column, rng)
        yield _line(seq, op, id, rows.get(id, {}))


def _value(column: str, rng: random.Random) -> object:
    share = rng.random()
    return _EQUAL[column][1](share) if column in _EQUAL else _RANGED[column](share)


def _line(seq: int, op: str, id: int, row: dict[str, object]) -> bytes:
    cells = "".join(
        f', "{name}": "{value}"' if isinstance(value, str) else f', "{name}": {value}' for name, value in row.items()
    )
    return f'{{"seq": {seq}, "table": "homes", "op": "{op}", "row": {{"id": {id}{cells}}}}}'.encode()
