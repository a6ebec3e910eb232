"""A workload of transactions through a real service, beside `tidings run` on the same input, and DuckDB."""

from __future__ import annotations

import io
import json
import random
import time
from collections import Counter
from pathlib import Path
from typing import Any

import duckdb
import httpx2
import pytest
from test_service_streams import fold
from websockets.sync.client import connect

from in_process import tidings
from service_process import CATALOG, NDJSON, Service, change, events, ndjson, post, stock
from tidings.sinks.parts import PartsSink

Records = list[dict[str, Any]]


def queries() -> dict[str, str]:
    """Several of each family. DuckDB answers all but those that begin with `drift`."""
    found = {"zz-last": "SELECT symbol FROM stocks WHERE symbol = 'ZZ'"}
    for n in range(6):
        price = 150 + 100 * n
        found[f"select-{n}"] = f"SELECT * FROM stocks WHERE price < {price} AND risk BETWEEN {n % 3} AND {n % 3 + 2}"
        found[f"shown-{n}"] = f"SELECT sector, price FROM stocks WHERE per >= {10 * n}"
        found[f"top-{n}"] = f"SELECT symbol, price FROM stocks WHERE per >= {5 * n} ORDER BY price LIMIT {n + 1}"
        found[f"down-{n}"] = f"SELECT * FROM stocks WHERE risk < {n} ORDER BY price DESC LIMIT 2"
        found[f"join-{n}"] = (
            "SELECT symbol, price, rating FROM stocks JOIN reviews USING (symbol) "
            f"WHERE price < {price} AND rating >= {n}"
        )
        found[f"drift-{n}"] = f"SELECT * FROM stocks WHERE moved(price) >= {30 * (n + 1)}"
    return found


def workload(count: int) -> list[Records]:
    """Transactions of upserts and deletes. No two prices are equal, so there is one answer to every top-k."""
    chance = random.Random(26)
    held: dict[str, set[Any]] = {"stocks": set(), "reviews": set()}
    found = []
    for number in range(count):
        records: Records = []
        for part in range(chance.randint(1, 5)):
            table = chance.choice(["stocks", "stocks", "reviews"])
            if held[table] and chance.random() < 0.2:
                key = chance.choice(sorted(held[table]))
                held[table].discard(key)
                records.append(change("delete", table, **{"symbol" if table == "stocks" else "id": key}))
            elif table == "stocks":
                symbol = f"S{chance.randint(0, 15)}"
                held[table].add(symbol)
                price = chance.randint(50, 900) + (10 * number + part) / 10_000
                more = {"per": float(chance.randint(0, 60)), "risk": float(chance.randint(0, 5))}
                records.append(stock(symbol, price, sector=chance.choice(["tech", "food"]), **more))
            else:
                id, symbol = chance.randint(0, 30), f"S{chance.randint(0, 15)}"
                held[table].add(id)
                rating = float(chance.randint(0, 9))
                records.append(change("upsert", table, id=id, symbol=symbol, rating=rating, report="r"))
        found.append([{**record, "tx": str(number)} for record in records])
    return [*found, [{**stock("ZZ", 10_000.0, per=0.0, risk=9.0), "tx": "last"}]]


class Recomputed:
    """DuckDB with the tables as they are after each transaction."""

    def __init__(self) -> None:
        self._database = duckdb.connect()
        self._database.execute(CATALOG)

    def apply(self, records: Records) -> None:
        for record in records:
            row, key = record["row"], "symbol" if record["table"] == "stocks" else "id"
            self._database.execute(f"DELETE FROM {record['table']} WHERE {key} = ?", [row[key]])
            if record["op"] == "upsert":
                marks = ", ".join("?" * len(row))
                self._database.execute(
                    f"INSERT INTO {record['table']} ({', '.join(row)}) VALUES ({marks})", [*row.values()]
                )

    def rows(self, sql: str) -> Counter[str]:
        found = self._database.execute(sql)
        names = [each[0] for each in found.description or ()]
        return Counter(json.dumps(dict(zip(names, row, strict=True))) for row in found.fetchall())


def run_lines(folder: Path, asked: dict[str, str], transactions: list[Records]) -> list[str]:
    """What `tidings run` writes on the same input."""
    for name, lines in (
        ("wishes", [{"id": id, "sql": sql} for id, sql in asked.items()]),
        ("changes", [record for records in transactions for record in records]),
    ):
        (folder / name).mkdir(parents=True)
        (folder / name / "0.jsonl").write_bytes(ndjson(lines))
    (folder / "catalog.sql").write_text(CATALOG)
    words = ["run", "--engine", "inline", "--trigger", "once", "--catalog", "catalog.sql", "--source", "files:changes"]
    words += ["--subscriptions", "files:wishes", "--sink", "files:out", "--checkpoint", "checkpoint"]
    done = tidings(folder, *words)
    assert done.returncode == 0, done.stderr
    sink = io.BytesIO()
    PartsSink(folder / "out").copy(sink)
    return sink.getvalue().decode().splitlines()


def in_order(lines: list[str]) -> list[str]:
    return sorted(lines, key=lambda line: (json.loads(line)["seq"], json.loads(line)["subscription"]))


@pytest.mark.parametrize("count", [120, pytest.param(3_000, marks=pytest.mark.extended)])
def test_the_service_tells_what_run_writes_and_duckdb_answers(tmp_path: Path, count: int) -> None:
    """Every line, on one stream with all subscriptions; after any id all views are what is recomputed at its seq; from every
    position the same lines come again, over either transport."""
    asked, transactions = queries(), workload(count)
    (tmp_path / "service").mkdir()
    with Service(tmp_path / "service") as service, service.client() as client:
        wanted = ndjson({"id": id, "sql": sql} for id, sql in asked.items())
        created = [
            json.loads(line) for line in client.post("/v1/bulk", content=wanted, headers=NDJSON).text.splitlines()
        ]
        assert {each["status"] for each in created} == {201}
        duck = Recomputed()
        exact = {id: sql for id, sql in asked.items() if not id.startswith("drift")}
        states = [(0, {id: Counter[str]() for id in exact})]
        # Nobody reads it meanwhile: without `every` it would have net changes instead.
        with events(client, *asked, behind="every") as stream:
            for records in transactions:
                done = post(client, records)
                assert done["refused"] == []
                duck.apply(records)
                states.append((done["seq"], {id: duck.rows(sql) for id, sql in exact.items()}))
            told = read_to_the_last(stream)
        check_views(told, states, asked)
        for id in exact:
            rows = client.get(f"/v1/subscriptions/{id}/rows").json()["rows"]
            assert Counter(map(json.dumps, rows)) == states[-1][1][id]
        check_resumed(service, client, list(asked), told)
    lines = [event["line"] for event in told]
    assert in_order(lines) == in_order(run_lines(tmp_path / "run", asked, transactions))
    assert len(lines) > 10 * count


def read_to_the_last(stream: Any) -> list[dict[str, Any]]:
    """Until `zz-last` is told of its row, which is the last line of the last seq."""
    found = []
    while True:
        event = next(stream)
        if event["event"] == "progress":
            continue
        assert event["event"] in ("snapshot", "change")
        found.append(event)
        if event["data"]["subscription"] == "zz-last" and event["event"] == "change":
            assert "id" in event
            return found


def check_views(told: list[dict[str, Any]], states: list[tuple[int, dict[str, Counter[str]]]], asked: Any) -> None:
    views: dict[str, Counter[str]] = {id: Counter() for id in asked}
    at = checked = 0
    for event in told:
        fold(views[event["data"]["subscription"]], event["data"])
        if "id" in event:
            seq = int(event["id"].rpartition("-")[2])
            while at + 1 < len(states) and states[at + 1][0] <= seq:
                at += 1
            checked += 1
            assert {id: views[id] for id in states[at][1]} == states[at][1], event["id"]
    assert checked > len(states) // 2


def check_resumed(service: Service, client: httpx2.Client, ids: list[str], told: list[dict[str, Any]]) -> None:
    positions = [(at, event["id"]) for at, event in enumerate(told) if "id" in event]
    for number, (at, position) in enumerate(positions):
        if number % max(1, len(positions) // 300):
            # Thousands of positions with thousands of lines behind each would take hours.
            continue
        rest = [event["line"] for event in told[at + 1 :]]
        with events(client, *ids, after=position, behind="every") as again:
            assert [next(again)["line"] for _ in rest] == rest
        if number % 8 or len(rest) > 300:
            continue
        with connect(service.url.replace("http", "ws") + "/v1/ws", max_size=None) as socket:
            assert json.loads(socket.recv(20))["type"] == "ready"
            for id in ids:
                socket.send(json.dumps({"type": "subscribe", "subscription": id, "after": position}))
            heard = [json.loads(socket.recv(20)) for _ in rest]
        frames = [{name: each[name] for name in each if name not in ("type", "position")} for each in heard]
        assert sorted(map(json.dumps, frames)) == sorted(rest)


def test_a_position_that_has_expired_is_said(tmp_path: Path) -> None:
    """With a real log that keeps half a megabyte: a poll is a 410; a stream begins anew, says so, and goes on exactly."""
    with Service(tmp_path, "--retain-bytes", "512KiB") as service, service.client() as client:
        lines = ndjson({"id": id, "sql": f"SELECT id, report FROM reviews WHERE symbol = '{id}'"} for id in ("a", "b"))
        assert client.post("/v1/bulk", content=lines, headers=NDJSON).status_code == 200

        def review(symbol: str, number: int) -> dict[str, Any]:
            return change(
                "upsert", "reviews", id=ord(symbol), symbol=symbol, rating=1.0, report=f"{number} " + "x" * 9_000
            )

        post(client, [review("b", 0)])
        old = client.get("/v1/subscriptions/a/rows").json()["position"]
        number = 80
        for each in range(number):
            post(client, [review("a", each)])
        assert client.get("/v1/subscriptions/a/changes", params={"after": old, "limit": 1}).status_code == 200
        # What is too much is removed every ten seconds, and behind the first micro-batch of an engine.
        # Readers see it with the next one.
        service.kill_engine()
        post(client, [review("a", number)])
        deadline = time.monotonic() + 30
        while (expired := client.get("/v1/subscriptions/a/changes", params={"after": old})).status_code == 200:
            assert time.monotonic() < deadline
            number += 1
            post(client, [review("a", number)])
        assert (expired.status_code, expired.json()["error"]) == (410, "position_expired")
        newest = client.get("/v1/subscriptions/a/rows").json()["position"]
        with events(client, "a", "b", after=old) as stream:
            found = [next(stream) for _ in range(3)]
            assert [(each["event"], each["data"]["subscription"]) for each in found[:2]] == [
                ("reset", "a"),
                ("snapshot", "a"),
            ]
            assert found[0]["data"]["why"] == "position_expired"
            assert found[2]["event"] in ("reset", "progress", "snapshot")
            view: Counter[str] = Counter()
            fold(view, found[1]["data"])
            assert view == Counter([json.dumps({"id": ord("a"), "report": f"{number} " + "x" * 9_000})])
        # A position that is young enough is as good as ever, and so is the view of one that was not told for long.
        post(client, [review("a", number + 1)])
        with events(client, "a", after=newest) as stream:
            assert next(stream)["event"] == "change"
        assert client.get("/v1/subscriptions/b/rows").json()["rows"] == [{"id": ord("b"), "report": "0 " + "x" * 9_000}]
        with events(client, "b") as stream:
            assert len(next(stream)["data"]["changes"]) == 1
