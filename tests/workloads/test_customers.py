"""The demo's customers are notified often enough to be looked at, and every reason that they are given is true."""

from __future__ import annotations

import json
import re
from collections import defaultdict

from tidings.engine import Engine
from tidings.sql import parse_catalog
from tidings.workloads.market import MarketFeed
from tidings.workloads.market.customers import CUSTOMERS, Reasons


def test_reasons_are_true() -> None:
    feed, reasons = MarketFeed(0), Reasons()
    engine = Engine(parse_catalog(feed.catalog_sql))
    for customer in CUSTOMERS:
        engine.door.create(customer.name, customer.sql, 0)
    said: dict[str, list[str]] = defaultdict(list)
    for _ in range(20):
        lines = feed.changes(2_500)
        # The feed is ahead of what customers are told, as it is in the demo.
        reasons.see(lines)
        for line in engine.feed(lines).notifications.lines():
            told = json.loads(line)
            words = reasons.words(told["subscription"], told["changes"])
            assert told["snapshot"] or words
            said[told["subscription"]] += words
    assert {customer.name for customer in CUSTOMERS} == said.keys()
    assert min(map(len, said.values())) > 20
    left = [re.fullmatch(r"\w+ left the range: (?:P/E ([\d.]+) (< 14|> 16)|it is no longer listed)", text)
            for text in said["Ada"] if "left" in text]  # fmt: skip
    assert len(left) > 5 and all(left)
    assert all(
        float(found[1]) < 14 if found[2] == "< 14" else float(found[1]) > 16 for found in left if found and found[1]
    )
    moved = [found for text in said["Cleo"] if (found := re.fullmatch(r"GOOG moved by (.*) %: (.*) -> (.*)", text))]
    assert moved and all(abs(float(found[3]) / float(found[2]) - 1) >= 0.02 for found in moved)
    pushed = [found for text in said["Ben"] if (found := re.fullmatch(r".* three: P/E (.*) < (.*) of \w+", text))]
    assert pushed and all(float(found[1]) < float(found[2]) for found in pushed)
    assert any("fell out" in text for text in said["Ben"])
