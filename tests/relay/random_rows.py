"""Row views and batches of rows at random, over values so few that ends of ranges meet."""

import datetime as dt
import json
import operator
from dataclasses import dataclass

from hypothesis import strategies as st

from tidings.relay.row_document import parse_rows
from tidings.relay.row_query import parse_row_query
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
def selections(draw, columns=("b", "c", "d", "e")):
    table = draw(st.sampled_from("tttu"))
    values = VALUES[table]
    compared = st.sampled_from(sorted(values) if table == "u" else columns)
    condition = compared.flatmap(
        lambda column: st.tuples(st.just(column), st.sampled_from(sorted(SIGNS)), st.sampled_from(values[column]))
    )
    names = [*values, "h"] if table == "t" else list(values)
    shown = draw(st.none() | st.lists(st.sampled_from(names), min_size=1, max_size=3, unique=True).map(tuple))
    return Selection(table, shown, tuple(draw(st.lists(condition, max_size=3))))


def selections_by_many():
    return selections(columns=tuple(VALUES["t"]))


@st.composite
def batches(draw):
    """Rows as (table, {column: value}), each key once."""
    found = {}
    for _ in range(draw(st.integers(0, 12))):
        table = draw(st.sampled_from("tttu"))
        key = CATALOG.table(table).key
        row = {
            name: draw(st.sampled_from(values) if name in key else st.none() | st.sampled_from(values))
            for name, values in VALUES[table].items()
        }
        if table == "t":
            row["h"] = draw(st.sampled_from([None, b"", b"\xff\0"]))
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
