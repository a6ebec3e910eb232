"""What gateways hold of drift subscriptions that are served by messages."""

import pytest

from research.stages.staged import StagedEngine as Engine
from tidings.sql import parse_catalog
from tidings.testing import Workload


@pytest.mark.extended
def test_views_of_a_part_of_the_key_hold_the_rows_of_their_own_channel_only():
    catalog = "CREATE TABLE t (market INT, symbol INT, price DOUBLE, PRIMARY KEY (market, symbol));"
    markets, rows = 300, 3
    subscriptions = [
        {"id": f"s{m}", "sql": f"SELECT * FROM t WHERE market = {m} AND moved(price) >= 1"} for m in range(markets)
    ]
    keys = [(m, s) for m in range(markets) for s in range(rows)]
    changes = [
        {"seq": i, "table": "t", "op": "insert", "row": {"market": m, "symbol": s, "price": 1.0}}
        for i, (m, s) in enumerate(keys, 1)
    ]
    engine = Engine(parse_catalog(catalog))
    workload = Workload(catalog, subscriptions, changes)
    engine.door.read(workload.subscription_lines())
    engine.feed(workload.change_lines())
    full = len(engine._gateway.dump())
    for m in range(1, markets):
        engine.door.drop(f"s{m}", 0)
    engine.feed([])
    # What is held grows with the subscriptions and their rows, not with their product, and goes with them.
    assert full < 300 * len(keys)
    assert len(engine._gateway.dump()) < full / 20
