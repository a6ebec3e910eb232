"""The live bench notices what is wrong: its reference, its views and its workload are checked here without Spark."""

from __future__ import annotations

import json
from itertools import islice

import duckdb
import pyarrow as pa

from tidings.bench.live.check import different, doubled, expected, unmatched, views, wrong_views
from tidings.bench.live.workload import CATALOG, COLUMNS, WRITERS, Writer, first_rows, subscriptions
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog

SEED, WISHES = 3, 60


def records(transactions: int) -> tuple[list[bytes], dict[str, dict[int, dict[str, object]]]]:
    """Records of the first rows and of some transactions of each writer, and the rows in the end."""
    tables = {name: {row["id"]: row for row in rows} for name, rows in first_rows(SEED).items()}
    found = [{"table": name, "op": "r", "row": row} for name, rows in tables.items() for row in rows.values()]
    for number in range(WRITERS):
        for transaction in islice(Writer(number, SEED, 10).transactions(), transactions):
            if transaction.is_rolled_back:
                continue
            tx = {"tx": f"{number}-{len(found)}"}
            for change in transaction.changes:
                if change.key is not None:
                    old = tables[change.table].pop(change.key)
                    found.append({**tx, "table": change.table, "op": "delete", "row": old})
                if change.row is not None:
                    assert change.row["id"] not in tables[change.table]
                    tables[change.table][change.row["id"]] = change.row
                    found.append({**tx, "table": change.table, "op": "insert", "row": change.row})
    return [json.dumps(record).encode() for record in found], tables


def test_a_right_run_is_right_and_a_wrong_one_is_noticed() -> None:
    lines, tables = records(30)
    wishes = subscriptions(WISHES, SEED)
    begun = {each.id: 1 for each in wishes}
    told = expected(wishes, begun, lines)
    session = duckdb.connect()
    session.execute(CATALOG)
    for name, rows in tables.items():
        session.register("given", pa.Table.from_pylist([*rows.values()]).select(COLUMNS[name]))
        session.execute(f"INSERT INTO {name} SELECT * FROM given")
    answers = [session.execute(each.recomputed).fetchall() for each in wishes if each.recomputed]
    assert wrong_views(views(told), wishes, answers) == []
    assert sum(map(len, answers)) > 100
    assert different(told, expected(wishes, begun, lines)) == 0
    lost = next(i for i in range(len(told) - 1, 0, -1) if b'"snapshot": false' in told[i])
    wrong = [*told[:lost], *told[lost + 1 :]]
    assert different(told, wrong) == 1
    assert (doubled(told), unmatched(told)) == (0, 0)
    gone = sum(change["op"] != "insert" for change in json.loads(told[lost])["changes"])
    assert (doubled([*told, told[lost]]), unmatched([*told, told[lost]])) == (1, gone)
    named = [each for each in wishes if each.recomputed]
    assert wrong_views(views(wrong), wishes, answers) or json.loads(told[lost])["subscription"] not in {
        each.id for each in named
    }


def test_all_subscriptions_are_served() -> None:
    door = Door(parse_catalog(CATALOG))
    wishes = subscriptions(500, SEED)
    for each in wishes:
        door.place(each.sql)
    assert len({each.sql for each in wishes}) > 400
