"""Row views and batches of rows at random, over values so few that ends of ranges meet."""

import datetime as dt
import json
import operator
import random
from dataclasses import dataclass

from hypothesis import strategies as st

from tidings.relay.row_views.document import parse_rows
from tidings.relay.row_views.query import parse_row_query
from tidings.sql import parse_catalog

CATALOG = parse_catalog(
    """
    CREATE TABLE t (a INT, b TEXT, c DATE, d DOUBLE, e BOOLEAN, f TIMESTAMP, g BIGINT, h BINARY, PRIMARY KEY (a, b));
    CREATE TABLE u (id BIGINT PRIMARY KEY, x INT, y TEXT);
    """
)
INTS = [-(2**31), -1, 0, 1, 2, 2**31 - 1]
BIGINTS = [-(2**63), -1, 0, 1, 2**63 - 1]
TEXTS = ["", "a", "a\0", "aaaaaaaab", "aaaaaaaac", "b'\"\\", "é"]
DATES = [dt.date.min, dt.date(2024, 2, 28), dt.date(2024, 2, 29), dt.date(2024, 3, 1), dt.date.max]
DOUBLES = [-1.7976931348623157e308, -5e-324, -0.0, 0.0, 1.5, 1e22]
TIMES = [dt.datetime(2024, 2, 29), dt.datetime(2024, 2, 29, 0, 0, 0, 1), dt.datetime(2024, 2, 29, 12), dt.datetime.max]
VALUES = {
    "t": {"a": INTS, "b": TEXTS, "c": DATES, "d": DOUBLES, "e": [False, True], "f": TIMES, "g": BIGINTS},
    "u": {"id": BIGINTS, "x": INTS, "y": TEXTS},
}
SIGNS = {"=": operator.eq, "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


@dataclass(frozen=True)
class Selection:
    """A selection as it is written, to be judged without our code."""

    table: str
    shown: tuple[str, ...] | None
    conditions: tuple[tuple[str, str, object], ...]

    @property
    def sql(self):
        text = f"SELECT {'*' if self.shown is None else ', '.join(self.shown)} FROM {self.table}"
        parts = [f"{column} {sign} {literal(value)}" for column, sign, value in self.conditions]
        return text + (" WHERE " + " AND ".join(parts) if parts else "")

    @property
    def query(self):
        return parse_row_query(self.sql, CATALOG)

    def holds(self, row):
        return all(row[c] is not None and SIGNS[sign](row[c], value) for c, sign, value in self.conditions)


def literal(value):
    match value:
        case bool():
            return str(value).upper()
        case dt.datetime():
            return f"TIMESTAMP '{value.isoformat(sep=' ')}'"
        case dt.date():
            return f"DATE '{value.isoformat()}'"
        case str():
            return "'" + value.replace("'", "''") + "'"
    return repr(value)


@st.composite
def selections(draw):
    """Over all tables and types."""
    table = draw(st.sampled_from("tttu"))
    values = VALUES[table]
    condition = st.sampled_from(sorted(values)).flatmap(
        lambda column: st.tuples(st.just(column), st.sampled_from(sorted(SIGNS)), st.sampled_from(values[column]))
    )
    names = [*values, "h"] if table == "t" else list(values)
    shown = draw(st.none() | st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True).map(tuple))
    return Selection(table, shown, tuple(draw(st.lists(condition, max_size=3))))


@st.composite
def related_selections(draw, count=18):
    """A list of selections so alike that many can be computed from one or several others."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    columns = chance.sample("bcdef", 2)
    return [_related(chance, columns) for _ in range(count)]


def _related(chance, columns):
    conditions = []
    for column in columns:
        values = VALUES["t"][column]
        if chance.random() < 0.6:
            conditions.append((column, chance.choice([">", ">="]), values[chance.choice([0, 0, 1])]))
        if chance.random() < 0.6:
            conditions.append((column, chance.choice(["<", "<="]), values[chance.choice([-1, -1, -2])]))
    shown = chance.choice([("a",), ("g", "h"), ("g",), ("h", "a", "g"), ("h",), tuple(columns), (columns[0], "g")])
    return Selection("t", shown, tuple(conditions))


@st.composite
def batches(draw):
    """Rows as (table, {column: value}), each key once."""
    chance = random.Random(draw(st.integers(0, 2**32)))
    found = {}
    for _ in range(draw(st.integers(0, 40))):
        table = chance.choice("tttu")
        key = CATALOG.table(table).key
        columns = {**VALUES[table], "h": [b"", b"\xff\0"]} if table == "t" else VALUES[table]
        row = {
            name: None if name not in key and chance.random() < 0.15 else chance.choice(values)
            for name, values in columns.items()
        }
        found[table, tuple(row[name] for name in key)] = (table, row)
    return list(found.values())


def document_of(batch):
    return parse_rows("\n".join(json.dumps({"table": t, "row": json_row(row)}) for t, row in batch).encode(), CATALOG)


def json_row(row):
    return {name: json_value(value) for name, value in row.items()}


def json_value(value):
    match value:
        case dt.date():
            return value.isoformat()
        case b"":
            return ""
        case bytes():
            return "/wA="
    return value
