"""Strategies of drift that are exact by definitions of their own: relaxed creation, and may and must by the published rule."""

from __future__ import annotations

import json
import random

import pytest
from test_choice_tree import runs_by_hand

from research.servers.host import Host
from research.stages.staged import StagedEngine
from research.strategies.drift.relaxed import RangeDoor
from tidings.model.blob import pack, unpack
from tidings.model.errors import UsageError
from tidings.sql import parse_catalog

QUOTES = "CREATE TABLE quotes (symbol INT, side INT, price DOUBLE, note INT, PRIMARY KEY (symbol, side));"
PINS = ["symbol = 0 AND side = 0", "symbol = 1 AND side = 0", "symbol = 0 AND side IN (0, 1)", "symbol = 1", ""]
NUMBERS = {"moved": [1, 2, 3, 4], "moved_percent": [5, 10, 20, 40], "moved_ratio": [1.125, 1.25, 1.5, 2]}


def line(record):
    return json.dumps(record).encode()


def queries(rng, count, spread):
    """(id, after, pin, kind, may, must) of subscriptions; spread: how many numbers a range may have."""
    made = []
    for number in range(count):
        kind = rng.choice(list(NUMBERS)[: 1 if number % 2 else 3])
        at = rng.randrange(4)
        must = NUMBERS[kind][min(3, at + rng.randrange(spread))]
        made.append(
            (f"s{number:03}", rng.choice([0, rng.randrange(60)]), rng.choice(PINS), kind, NUMBERS[kind][at], must)
        )
    return sorted(made, key=lambda query: query[1])


def moves(rng, count):
    """Changes of four rows, which come, move and go."""
    rows, changes = {}, []
    for seq in range(1, count + 1):
        key = rng.randrange(2), rng.randrange(2)
        price = rows.get(key, 20.0) + rng.choice([-3, -2, -1, -0.5, 0, 0.5, 1, 2, 3])
        is_gone = key in rows and rng.random() < 0.05
        row = {"symbol": key[0], "side": key[1]} | ({} if is_gone else {"price": max(price, 1.0), "note": seq})
        changes.append({"seq": seq, "table": "quotes", "op": "delete" if is_gone else "upsert", "row": row})
        if is_gone:
            del rows[key]
        else:
            rows[key] = max(price, 1.0)
    return changes


def follows(pin, key):
    symbol, _ = key
    return {PINS[0]: key == (0, 0), PINS[1]: key == (1, 0), PINS[2]: symbol == 0, PINS[3]: symbol == 1, "": True}[pin]


def sql(query, *, ranged):
    _, _, pin, kind, may, must = query
    moved = f"{kind}(price) BETWEEN {may} AND {must}" if ranged else f"{kind}(price) >= {must}"
    return f"SELECT * FROM quotes WHERE {pin + ' AND ' if pin else ''}{moved}"


def played(strategy, subscribed, dropped, changes, rng, *, ranged):
    """Per subscription what it held after each of its notifications: (seq, {key: note})."""
    engine = StagedEngine(parse_catalog(QUOTES), {"drift": strategy})
    door = RangeDoor(engine.catalog) if strategy == "choice" else engine.door
    records = [{"id": query[0], "sql": sql(query, ranged=ranged), "after": query[1]} for query in subscribed]
    records += [{"id": id, "drop": True, "after": after} for id, after in dropped.items()]
    assert door.read(map(line, records)) == []
    if door is not engine.door:
        engine.take(door.take())
    held, found = {}, {}
    while changes:
        size = rng.choice([1, 2, 5, 20])
        for text in engine.feed(map(line, changes[:size])).notifications.lines():
            note = json.loads(text)
            rows = held.setdefault(note["subscription"], {})
            for change in note["changes"]:
                for old in [change["old"]] if "old" in change else [change["row"]] * (change["op"] == "delete"):
                    assert rows.pop((old["symbol"], old["side"])) == old["note"]
                if change["op"] != "delete":
                    rows[change["row"]["symbol"], change["row"]["side"]] = change["row"]["note"]
            found.setdefault(note["subscription"], []).append((note["seq"], dict(rows)))
        changes = changes[size:]
    return found, engine


def expected(subscribed, dropped, changes, tell):
    """The same, recomputed. tell: (kind, sorted keys of members, their anchors, value) -> places of those told."""
    now, held, found, living = {}, {}, {}, []
    for seq in range(len(changes) + 1):
        told = set()
        if seq:
            row = changes[seq - 1]["row"]
            key = row["symbol"], row["side"]
            was = now.pop(key, None)
            if "price" in row:
                now[key] = row["price"], row["note"]
            for form in {(query[2], query[3]) for query in living if follows(query[2], key)}:
                mine = [query for query in living if query[2:4] == form]
                if was is None or key not in now:
                    told |= {query[0] for query in mine}
                else:
                    members = sorted({query[4:] for query in mine})
                    anchors = [next(held[q[0]][key][0] for q in mine if q[4:] == member) for member in members]
                    hit = tell(form[1], members, anchors, now[key][0])
                    told |= {query[0] for query in mine if members.index(query[4:]) in hit}
            for id in told:
                held[id].pop(key, None)
                if key in now:
                    held[id][key] = now[key]
        for id in sorted(told):
            found[id].append((seq, {key: note for key, (_, note) in held[id].items()}))
        for query in [query for query in subscribed if query[1] == seq]:
            twin = next((other for other in living if other[2:] == query[2:]), None)
            mine = {key: row for key, row in now.items() if follows(query[2], key)}
            held[query[0]] = mine if twin is None else dict(held[twin[0]])
            living.append(query)
            found[query[0]] = [(seq, {key: note for key, (_, note) in held[query[0]].items()})]
        living = [query for query in living if dropped.get(query[0]) != seq]
    return found


def tell_between_musts(kind, members, anchors, value):
    return {i for first, last in runs_by_hand(kind, members, anchors, value) for i in range(first, last + 1)}


def tell_far_moved(kind, members, anchors, value):
    """Those who must be told; here `may` is `must`."""
    runs = runs_by_hand(kind, [(must, must) for _, must in members], anchors, value)
    return {i for first, last in runs for i in range(first, last + 1)}


@pytest.mark.extended
@pytest.mark.parametrize(("strategy", "tell"), [("relaxed", tell_far_moved), ("choice", tell_between_musts)])
@pytest.mark.parametrize("seed", range(4))
def test_told_as_defined(strategy, tell, seed):
    rng = random.Random(seed)
    subscribed = queries(rng, 60, 1 if strategy == "relaxed" else 3)
    dropped = {query[0]: query[1] + rng.randrange(1, 40) for query in rng.sample(subscribed, 15)}
    changes = moves(rng, 80)
    found, _ = played(strategy, subscribed, dropped, changes, rng, ranged=strategy == "choice")
    assert found == expected(subscribed, dropped, changes, tell)


@pytest.mark.extended
def test_a_relaxed_newcomer_gets_what_its_radius_holds_and_needs_no_label():
    changes = [
        {"seq": seq, "table": "quotes", "op": "upsert", "row": {"symbol": 0, "side": 0, "price": price, "note": seq}}
        for seq, price in enumerate([20.0, 21.0, 22.0], 1)
    ]
    subscribed = [("a", 0, PINS[0], "moved", 2, 2), ("b", 2, PINS[0], "moved", 2, 2)]
    rng = random.Random(0)
    relaxed, engine = played("relaxed", subscribed, {}, changes, rng, ranged=False)
    # b comes at 21 and is told 20, as a holds it; both are told 22 by one message with one range.
    assert relaxed == {"a": [(0, {}), (1, {(0, 0): 1}), (3, {(0, 0): 3})], "b": [(2, {(0, 0): 1}), (3, {(0, 0): 3})]}
    assert engine.stats.messages == {"drift": 2}
    exact, _ = played("region", subscribed, {}, changes, rng, ranged=False)
    assert exact["b"] == [(2, {(0, 0): 2})]


@pytest.mark.extended
def test_a_choice_makes_fewer_and_larger_ranges():
    """At 30, those with 2 to 9 and 6 to 10 must be told, and 4 to 20 may be: one range in place of two."""
    changes = [
        {"seq": seq, "table": "quotes", "op": "upsert", "row": {"symbol": 0, "side": 0, "price": price, "note": seq}}
        for seq, price in enumerate([20.0, 30.0], 1)
    ]
    subscribed = [
        ("a", 1, PINS[0], "moved", 2, 9),
        ("b", 1, PINS[0], "moved", 4, 20),
        ("c", 1, PINS[0], "moved", 6, 10),
    ]
    ranges = {}
    for strategy in ("choice", "region"):
        boxes = []
        engine = StagedEngine(
            parse_catalog(QUOTES),
            {"drift": strategy},
            on_work=lambda work, boxes=boxes: boxes.extend(len(batch.regions.tags) for batch in work.messages),
        )
        door = RangeDoor(engine.catalog) if strategy == "choice" else engine.door
        told_at_must = [{"id": q[0], "sql": sql(q, ranged=strategy == "choice"), "after": q[1]} for q in subscribed]
        door.read(map(line, told_at_must))
        if strategy == "choice":
            engine.take(door.take())
        engine.feed(map(line, changes[:1]))
        told = len(engine.feed(map(line, changes[1:])).notifications)
        ranges[strategy] = sum(boxes), told
    assert ranges == {"choice": (1, 3), "region": (1, 2)}


@pytest.mark.extended
@pytest.mark.parametrize("strategy", ["relaxed", "choice"])
def test_a_dump_goes_on_where_it_was_made(strategy):
    catalog = parse_catalog(QUOTES)
    rng = random.Random(9)
    subscribed, changes = queries(rng, 20, 2), moves(rng, 60)
    engine = StagedEngine(catalog, {"drift": strategy})
    door = RangeDoor(catalog)
    door.read(line({"id": q[0], "sql": sql(q, ranged=True), "after": q[1]}) for q in subscribed)
    engine.take(door.take())
    engine.feed(map(line, changes[:30]))
    host = engine._tables._host
    again = Host(catalog, {"drift": strategy})
    again.load(unpack(pack(host.dump())))
    engine._tables._host = again
    other = StagedEngine(catalog, {"drift": strategy})
    door = RangeDoor(catalog)
    door.read(line({"id": q[0], "sql": sql(q, ranged=True), "after": q[1]}) for q in subscribed)
    other.take(door.take())
    other.feed(map(line, changes[:30]))
    later = [list(each.feed(map(line, changes[30:])).notifications.lines()) for each in (engine, other)]
    assert later[0] == later[1] != []


def test_silence_is_refused():
    engine = StagedEngine(
        parse_catalog("CREATE TABLE q (id INT PRIMARY KEY, price DOUBLE, tick INT);"), {"drift": "relaxed"}
    )
    engine.door.read([line({"id": "a", "sql": "SELECT * FROM q WHERE (moved(price) >= 1 OR silent_for(tick) >= 2)"})])
    with pytest.raises(UsageError, match="silent_for"):
        engine.feed([])
