"""Parties that publish in one table and subscribe to the other are told of the same pairs if one of the tables is classic."""

import json
from collections import Counter

from hypothesis import given, settings
from hypothesis import strategies as st

from tidings.engine import Engine
from tidings.sql import parse_catalog
from tidings.testing.offers_inputs import OFFERS_CATALOGS, constraints

COLUMNS = [sql.split("(", 1)[1].split(") WITH")[0] for sql in OFFERS_CATALOGS]


def catalog_of(columns, matching="classic"):
    return parse_catalog(
        f"CREATE TABLE sellers ({columns}) WITH (rows = 'constraints');\n"
        f"CREATE TABLE buyers ({columns}) WITH (rows = 'constraints', matching = '{matching}');"
    )


def pairs(catalog, sellers, buyers):
    """(seller, buyer) as often as sellers are told of it, and as buyers are. Of those that are accepted on both sides."""
    engine = Engine(catalog)
    parties = [("sellers", "buyers", f"s{i}", where) for i, where in enumerate(sellers)]
    parties += [("buyers", "sellers", f"b{i}", where) for i, where in enumerate(buyers)]
    refused = engine.door.read(
        json.dumps({"id": id, "sql": f"SELECT id FROM {other} WHERE {where}"}).encode()
        for _, other, id, where in parties
    )
    apart = {json.loads(entry.raw)["id"] for entry in refused}
    records = [
        {"seq": seq, "table": own, "op": "insert", "id": id, "where": where}
        for seq, (own, _, id, where) in enumerate(parties, 1)
        if id not in apart
    ]
    told = Counter(), Counter()
    for line in engine.feed([json.dumps(record).encode() for record in records]).notifications.lines():
        record = json.loads(line)
        for change in record["changes"]:
            pair = record["subscription"], change["row"]["id"]
            told[pair[0].startswith("b")].update([pair[::-1] if pair[0].startswith("b") else pair])
    return told


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_both_are_told_of_the_same_pairs(data):
    catalog = catalog_of(data.draw(st.sampled_from(COLUMNS)))
    wheres = st.lists(constraints(catalog.table("sellers")), min_size=1, max_size=4)
    by_seller, by_buyer = pairs(catalog, data.draw(wheres), data.draw(wheres))
    assert by_seller == by_buyer


def test_with_two_symmetric_tables_they_are_not():
    columns, sellers, buyers = "x INT, y INT", ["x = 1"], ["x = 1 AND y = 1"]
    assert [len(told) for told in pairs(catalog_of(columns), sellers, buyers)] == [1, 1]
    assert [len(told) for told in pairs(catalog_of(columns, "symmetric"), sellers, buyers)] == [0, 1]
