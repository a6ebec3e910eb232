"""Streams of a real service: what they say folds to what recomputation gives, from every position, for every transport."""

from __future__ import annotations

import json
import random
import threading
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

import httpx2
import pytest
from websockets.sync.client import connect

from service_process import Service, change, create, events, post, stock

QUERIES = {
    "select": "SELECT * FROM stocks WHERE price < 500",
    "shown": "SELECT symbol FROM stocks WHERE risk BETWEEN 2 AND 4",
    "topk": "SELECT * FROM stocks WHERE per >= 10 ORDER BY price LIMIT 3",
    "join": "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE rating >= 5",
    "drift": "SELECT * FROM stocks WHERE moved(price) >= 50",
}


def fold(view: Counter[str], told: dict[str, Any]) -> None:
    """As every client does. Rows that are retracted must be there."""
    if told["snapshot"] and not told.get("part"):
        view.clear()
    for each in told["changes"]:
        if each["op"] != "insert":
            gone = json.dumps(each["row"] if each["op"] == "delete" else each["old"])
            assert view[gone] > 0, "a row was retracted that was not told"
            view[gone] -= 1
        if each["op"] != "delete":
            view[json.dumps(each["row"])] += 1
    for row in [row for row, count in view.items() if not count]:
        del view[row]


def rows_of(client: httpx2.Client, id: str) -> Counter[str]:
    return Counter(json.dumps(row) for row in client.get(f"/v1/subscriptions/{id}/rows").json()["rows"])


def transactions(prefix: str, seed: int, count: int) -> list[list[dict[str, Any]]]:
    random_ = random.Random(seed)
    found = []
    for number in range(count):
        records = []
        for _ in range(random_.randint(1, 4)):
            symbol = f"{prefix}{random_.randint(0, 9)}"
            if random_.random() < 0.2:
                key = random_.randint(0, 20) + 1000 * seed
                record = change("upsert", "reviews", id=key, symbol=symbol, rating=random_.random() * 10, report="x")
            else:
                risk = random_.choice([1.0, 3.0, 5.0])
                record = stock(symbol, random_.choice([100.0, 480.0, 520.0, 700.0]), risk=risk)
            records.append({**record, "tx": f"{prefix}-{number}"})
        found.append(records)
    return found


def test_every_event_leads_to_the_rows_of_its_moment(service: Service) -> None:
    """Two transactions after another, streams from the start and from every position: the same suffix, the same rows."""
    with service.client() as client:
        ids = [f"fold-{name}" for name in QUERIES]
        for id, sql in zip(ids, QUERIES.values(), strict=True):
            create(client, id, sql)
        with events(client, *ids) as stream:
            views: dict[str, Counter[str]] = {id: Counter() for id in ids}
            for _ in ids:
                first = next(stream)
                assert first["event"] == "snapshot"
                fold(views[first["data"]["subscription"]], first["data"])
            assert "id" in first, "a position stands behind the last snapshot"
            start, said = first["id"], []
            for records in transactions("F", 7, 60):
                done = post(client, records)
                wanted = {id: rows_of(client, id) for id in ids}
                while views != wanted:
                    event = next(stream)
                    assert event["event"] == "change"
                    assert int(event["id"].rpartition("-")[2]) <= done["seq"] if "id" in event else True
                    said.append(event)
                    fold(views[event["data"]["subscription"]], event["data"])
        assert len(said) > 50
        assert len({(event["data"]["subscription"], event["data"]["seq"]) for event in said}) == len(said)
        for a, b in pairwise(said):
            # A position stands behind the last event of a seq.
            assert ("id" in a) == (a["data"]["seq"] != b["data"]["seq"])
        positions = [(at, event["id"]) for at, event in enumerate(said) if "id" in event]
        for at, position in [(-1, start), *positions[:: max(1, len(positions) // 12)]]:
            rest = said[at + 1 :]
            with events(client, *ids, after=position) as again:
                assert [next(again)["line"] for _ in rest] == [event["line"] for event in rest]
        # One subscription alone, and polled.
        own = [event["line"] for event in said if event["data"]["subscription"] == ids[0]]
        with events(client, ids[0], after=start) as again:
            assert [next(again)["line"] for _ in own] == own
        polled: list[str] = []
        position = start
        while len(polled) < len(own):
            page = client.get(f"/v1/subscriptions/{ids[0]}/changes", params={"after": position, "limit": 7}).json()
            polled += [json.dumps(each) for each in page["notifications"]]
            position = page["position"]
        assert polled == own and page["up_to_date"]


def test_a_stream_opened_before_a_change_has_it_and_one_opened_later_begins_with_it(service: Service) -> None:
    with service.client() as client:
        create(client, "before", "SELECT symbol FROM stocks WHERE symbol = 'BEFORE'")
        with events(client, "before") as stream:
            assert next(stream)["data"]["changes"] == []
            post(client, [stock("BEFORE", 1.0)])
            assert next(stream)["data"]["changes"] == [{"op": "insert", "row": {"symbol": "BEFORE"}}]
        with events(client, "before") as stream:
            later = next(stream)
        assert later["event"] == "snapshot"
        assert later["data"]["changes"] == [{"op": "insert", "row": {"symbol": "BEFORE"}}]


def test_positions_that_cannot_be_used(service: Service) -> None:
    with service.client() as client:
        position = create(client, "where", "SELECT symbol FROM stocks WHERE symbol = 'WHERE'")["position"]
        post(client, [stock("WHERE", 1.0)])
        seq = position.partition("-")[2]
        for after, why in (
            (f"other0000-{seq}", "new_epoch"),
            (f"{position.partition('-')[0]}-999999999", "position_expired"),
        ):
            with events(client, "where", after=after) as stream:
                reset, snapshot = next(stream), next(stream)
            assert (reset["event"], reset["data"]) == ("reset", {"subscription": "where", "why": why})
            assert snapshot["event"] == "snapshot" and len(snapshot["data"]["changes"]) == 1
            done = client.get("/v1/subscriptions/where/changes", params={"after": after})
            assert (done.status_code, done.json()["error"]) == (410, "position_expired")
        assert client.get("/v1/stream", params={"subscription": "where", "after": "nonsense"}).status_code == 400


def test_edits_and_drops_are_said(service: Service) -> None:
    with service.client() as client:
        create(client, "edited", "SELECT symbol FROM stocks WHERE symbol = 'EDIT'")
        with events(client, "edited") as stream:
            assert next(stream)["event"] == "snapshot"
            post(client, [stock("EDIT", 7.0)])
            assert next(stream)["event"] == "change"
            body = {"sql": "SELECT price FROM stocks WHERE symbol = 'EDIT'"}
            assert client.put("/v1/subscriptions/edited", json=body, headers={"if-match": '"9"'}).status_code == 412
            done = client.put("/v1/subscriptions/edited", json=body, headers={"if-match": '"1"'})
            assert (done.status_code, done.json()["version"]) == (200, 2)
            assert next(stream)["data"] == {"subscription": "edited", "why": "edited"}
            snapshot = next(stream)
            assert snapshot["data"]["changes"] == [{"op": "insert", "row": {"price": 7.0}}]
            assert snapshot["id"] == done.json()["position"]
            dropped = client.delete("/v1/subscriptions/edited").json()
            end = next(stream)
            assert (end["event"], end["data"]["why"], end["data"]["seq"]) == ("end", "dropped", dropped["seq"])
            assert next(stream, None) is None, "a stream without subscriptions ends"
        # The same id begins anew, at a seq of its own.
        assert create(client, "edited", "SELECT symbol FROM stocks WHERE symbol = 'EDIT'")["seq"] > dropped["seq"]


def test_net_changes_now_and_then(service: Service) -> None:
    with service.client() as client:
        create(client, "net", "SELECT symbol, price FROM stocks WHERE symbol = 'NET'")
        with events(client, "net", every_seconds=1) as stream:
            view: Counter[str] = Counter()
            fold(view, next(stream)["data"])
            began = time.monotonic()
            for price in range(40):
                post(client, [stock("NET", float(price))])
            wanted = rows_of(client, "net")
            told = net = 0
            while view != wanted:
                event = next(stream)
                fold(view, event["data"])
                told += 1
                net += "net_from" in event["data"]
            assert told <= time.monotonic() - began + 2
            assert net


def test_websocket(service: Service) -> None:
    with service.client() as client:
        for name in ("ws-a", "ws-b"):
            create(client, name, f"SELECT symbol FROM stocks WHERE symbol = '{name}'")
        token = client.post("/v1/tokens", json={"subscriptions": ["ws-a"], "ttl_seconds": 60}).json()["token"]
        url = service.url.replace("http", "ws") + "/v1/ws"

        def talk(credential: str) -> list[dict[str, Any]]:
            with connect(url, subprotocols=["tidings.v1"]) as socket:  # type: ignore[list-item]
                assert socket.subprotocol == "tidings.v1"

                def say(**frame: Any) -> None:
                    socket.send(json.dumps(frame))

                def hear() -> dict[str, Any]:
                    return dict(json.loads(socket.recv(30)))

                say(type="auth", token=credential)
                assert hear()["type"] == "ready"
                found = []
                for name in ("ws-a", "ws-b"):
                    say(type="subscribe", subscription=name)
                    found.append(hear())
                post(client, [stock("ws-a", 1.0)])
                found.append(hear())
                post(client, [change("delete", symbol="ws-a")])
                found.append(hear())
                say(type="unsubscribe", subscription="ws-a")
                say(type="ping")
                found.append(hear())
                return found

        assert service.key is not None
        kinds = [(each["type"], each.get("subscription")) for each in talk(service.key)]
        assert kinds == [
            ("snapshot", "ws-a"),
            ("snapshot", "ws-b"),
            ("change", "ws-a"),
            ("change", "ws-a"),
            ("pong", None),
        ]
        # A token is for the subscriptions it names; others are not there.
        kinds = [(each["type"], each.get("error")) for each in talk(token)]
        assert kinds[:3] == [("snapshot", None), ("error", "not_found"), ("change", None)]


@pytest.mark.parametrize("races", [10, pytest.param(200, marks=pytest.mark.extended)])
def test_races_of_create_edit_and_drop_against_changes(service: Service, races: int) -> None:
    """No gap and no double, whenever a stream begins: its snapshot and changes are what happened since."""
    stop = threading.Event()
    symbol = f"RACE{races}"
    if service.engine == "spark":
        # A creation takes as long as a micro-batch.
        races = 10

    def feed() -> int:
        number = 0
        with service.client() as client:
            while not stop.is_set():
                number += 1
                post(client, [stock(symbol, float(number))])
        return number

    def race(worker: int) -> int:
        with service.client() as client:
            for number in range(races):
                id = f"race-{worker}-{number}"
                create(client, id, f"SELECT symbol, price FROM stocks WHERE symbol = '{symbol}'")
                with events(client, id) as stream:
                    view: Counter[str] = Counter()
                    last = None
                    for step in range(6):
                        if step == 3 and number % 2:
                            sql = f"SELECT price, symbol FROM stocks WHERE symbol = '{symbol}'"
                            assert client.put(f"/v1/subscriptions/{id}", json={"sql": sql}).status_code == 200
                        event = next(stream)
                        if event["event"] == "reset":
                            assert number % 2 and event["data"]["why"] == "edited"
                            last = None
                            continue
                        assert event["event"] in ("snapshot", "change")
                        fold(view, event["data"])
                        price = max((json.loads(row)["price"] for row in view), default=None)
                        # Prices are consecutive numbers: a gap or a double would show.
                        assert last is None or price == last + 1, (last, price)
                        last = price
                assert client.delete(f"/v1/subscriptions/{id}").status_code == 200
        return races

    with ThreadPoolExecutor(6) as pool:
        feeding = pool.submit(feed)
        try:
            assert sum(pool.map(race, range(5))) == 5 * races
        finally:
            stop.set()
        assert feeding.result() > 10


def test_many_at_once(service: Service) -> None:
    count = 2_500
    lines = [
        json.dumps({"id": f"many-{n}", "sql": f"SELECT symbol FROM stocks WHERE price = {n}"}) for n in range(count)
    ]
    lines[3], lines[5] = '{"id": "many-3", "sql": "SELECT nothing FROM stocks"}', "{broken"
    headers = {"content-type": "application/x-ndjson"}
    with service.client() as client:
        answers = [
            json.loads(line)
            for line in client.post("/v1/bulk", content="\n".join(lines), headers=headers).text.splitlines()
        ]
        assert [each["line"] for each in answers] == list(range(1, count + 1))
        assert Counter(each["status"] for each in answers) == {201: count - 2, 422: 1, 400: 1}
        again = [
            json.loads(line)
            for line in client.post("/v1/bulk", content="\n".join(lines[:3]), headers=headers).text.splitlines()
        ]
        assert [each["status"] for each in again] == [200, 200, 200]
        found = []
        after = ""
        while after is not None:
            page = client.get(
                "/v1/subscriptions", params={"limit": 700, "after": after or "many", "family": "select"}
            ).json()
            found += [each["id"] for each in page["subscriptions"] if each["id"].startswith("many-")]
            after = page["next"]
        assert len(found) == count - 2 and found == sorted(found)
        drops = "\n".join(json.dumps({"id": id, "drop": True}) for id in [*found, "many-nobody"])
        gone = [
            json.loads(line)["status"]
            for line in client.post("/v1/bulk", content=drops, headers=headers).text.splitlines()
        ]
        assert gone == [200] * (count - 2) + [404]
