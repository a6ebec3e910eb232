"""Labels given anew: a move touches one circular range of labels of a radius, and everybody still hears what is for them."""

from __future__ import annotations

import json
import random
from itertools import accumulate

import numpy as np
import pytest
from threshold_index_reference import check_invariants

from research.servers.check_regions import RegionCheck
from research.servers.sender import MessageSender
from research.strategies.drift.kernels.threshold_index import ABSOLUTE, CHOOSE, NO_TIME, RATIO, ThresholdIndex
from research.strategies.drift.renewed import EPOCH
from research.strategies.loading import server
from research.strategies.servers import SERVERS
from tidings.pipeline.door import Door
from tidings.sql import parse_catalog
from tidings.testing import CHECKS, check_family, drift_workloads

pytestmark = pytest.mark.extended
TIGHT = server("research.strategies.drift.renewed", "renewed", 1)
"""Labels are given one after the other, so that nearly every newcomer needs room."""


class Crowd:
    """Members of one item by hand: reach, label now, anchor."""

    def __init__(self, kind, *, renews):
        self.kind, self.value = kind, 64.0
        self.index = ThresholdIndex(kind, renews=renews, label_step=1)
        self.index.new_audience()
        self.index.new_items([0], [self.value], [NO_TIME])
        self.members, self.renewals = [], []

    def join(self, reaches):
        labels = self.index.add([0] * len(reaches), reaches, [CHOOSE] * len(reaches)).tolist()
        for renewal in self.index.take_renewals():
            self.renewals.append(renewal)
            for member in self.members:
                if member[0] == renewal.reach:
                    member[1] = renewal.of(member[1])
        self.members += [[reach, label, self.value] for reach, label in zip(reaches, labels, strict=True)]

    def leave(self, member):
        self.members.remove(member)
        self.index.remove([0], [member[0]], [member[1]])

    def move(self, value):
        """Boxes of the move, checked against the members."""
        self.value = value
        touched = self.index.move([0], [value], [NO_TIME])
        boxes = list(zip(*(column.tolist() for column in touched[1:]), strict=True))
        for member in self.members:
            reach, label, anchor = member
            limits = (anchor - reach, anchor + reach) if self.kind == ABSOLUTE else (anchor / reach, anchor * reach)
            is_told = not limits[0] < value < limits[1]
            assert is_told == any(lo <= reach <= hi and l1 <= label <= l2 for lo, hi, l1, l2 in boxes)
            if is_told:
                member[2] = value
        return boxes


def walk(rng, kind, *, renews, steps=250):
    """A crowd after a walk with newcomers, and the most boxes that one radius had."""
    crowd, most = Crowd(kind, renews=renews), 0
    reaches = [8.0, 12.0] if kind == ABSOLUTE else [1.125, 1.25]
    for _ in range(steps):
        if rng.random() < 0.6:
            crowd.join([rng.choice(reaches) for _ in range(rng.randrange(1, 4))])
        elif crowd.members and rng.random() < 0.2:
            crowd.leave(rng.choice(crowd.members))
        boxes = crowd.move(max(20.0, crowd.value + rng.choice([-2, -1, -0.5, 0.25, 0.5, 1, 2])))
        most = max([most, *(sum(lo <= reach <= hi for lo, hi, _, _ in boxes) for reach in reaches)])
        check_invariants(crowd.index)
    return crowd, most


@pytest.mark.parametrize("kind", [ABSOLUTE, RATIO])
@pytest.mark.parametrize("seed", range(5))
def test_a_radius_has_at_most_two_ranges(kind, seed):
    crowd, most = walk(random.Random(seed), kind, renews=True)
    assert crowd.renewals and most == 2
    crowd, most = walk(random.Random(seed), kind, renews=False)
    assert not crowd.renewals and most > 2


def test_a_loaded_index_goes_on_renewing():
    crowd, _ = walk(random.Random(1), ABSOLUTE, renews=True, steps=60)
    again = ThresholdIndex(ABSOLUTE, renews=True, label_step=1)
    again.load(crowd.index.dump())
    for index in (crowd.index, again):
        for value in (40.0, 41.0, 42.0, 41.5, 41.25, 41.75):
            index.move([0], [value], [NO_TIME])
            index.add([0], [8.0], [CHOOSE])
        check_invariants(index)
    first, second = (index.take_renewals() for index in (crowd.index, again))
    assert len(first) == len(second) > 0
    for one, other in zip(first, second, strict=True):
        assert one.old.tolist() == other.old.tolist() and one.new.tolist() == other.new.tolist()


def test_few_labels_change_however_newcomers_arrive():
    """Always into the same gap: the worst case."""
    index, count = ThresholdIndex(ABSOLUTE, renews=True), 2_000
    index.new_audience()
    index.new_items([0], [0.0], [NO_TIME])
    for value in accumulate((0.5**at if at < 40 else 1e-12 for at in range(count)), initial=1.0):
        index.move([0], [value], [NO_TIME])
        index.add([0], [1_000.0], [CHOOSE])
        # The next comes right before all but the first.
        index.move([0], [0.0], [NO_TIME])
    changed = sum(len(renewal.old) for renewal in index.take_renewals())
    assert changed < count * np.log2(count) ** 2


def test_an_epoch_says_which_labels_a_message_means():
    """Receivers hear of renewals and of messages in any order, and each message is for labels of its epoch."""
    rng = random.Random(4)
    crowd, log = Crowd(ABSOLUTE, renews=True), []
    for _ in range(120):
        if rng.random() < 0.6:
            crowd.join([8.0])
        anchors = [member[2] for member in crowd.members]
        boxes = crowd.move(crowd.value + rng.choice([-3, -1, 0.5, 1, 3]))
        told = {i for i, member in enumerate(crowd.members) if anchors[i] != member[2]}
        log.append((len(crowd.renewals), boxes, told, len(anchors)))
    assert log[0][0] < log[-1][0]
    last = len(crowd.renewals)
    labels = {last: [member[1] for member in crowd.members]}
    for epoch in range(last, 0, -1):
        renewal = crowd.renewals[epoch - 1]
        back = dict(zip(renewal.new.tolist(), renewal.old.tolist(), strict=True))
        labels[epoch - 1] = [back.get(label, label) for label in labels[epoch]]

    def reached(boxes, epoch, count):
        return {i for i in range(count) if any(l1 <= labels[epoch][i] <= l2 for _, _, l1, l2 in boxes)}

    for epoch, boxes, told, count in log:
        assert told <= reached(boxes, epoch, count)
    assert any(not told <= reached(boxes, last, count) for _, boxes, told, count in log)


@pytest.mark.parametrize(
    "check", [*CHECKS, RegionCheck(lambda *_: False)], ids=lambda check: getattr(check, "__name__", "regions")
)
def test_contract_when_labels_change_all_the_time(monkeypatch, check):
    monkeypatch.setitem(SERVERS["drift"], "region:renewed", TIGHT)
    check_family("drift", drift_workloads(), checks=[check], examples=15, strategies=["region:renewed"])


def test_messages_have_two_boxes_where_labels_that_stay_need_more():
    catalog = parse_catalog("CREATE TABLE quotes (symbol INT PRIMARY KEY, price DOUBLE);")
    # Each newcomer starts between the first and the one before, until there is no label left between the two.
    prices = [64.0, *(64 + 0.5**at for at in range(46)), 72 + 0.5**38]
    changes = [
        json.dumps({"seq": seq, "table": "quotes", "op": "upsert", "row": {"symbol": 0, "price": price}}).encode()
        for seq, price in enumerate(prices, 1)
    ]
    query = "SELECT * FROM quotes WHERE symbol = 0 AND moved(price) >= 8"
    created = [json.dumps({"id": f"s{at}", "sql": query, "after": at}).encode() for at in range(1, 48)]
    boxes, epochs = {}, []
    for strategy in ("region", "region:renewed"):
        sender = MessageSender(catalog, 1, lambda _: 0, {"drift": strategy}, by_commit=False)
        sent = []
        sender.on_messages = sent.append
        door = Door(catalog)
        assert door.read(created) == []
        sender.feed(changes, 0, door.take(), is_end=True)
        boxes[strategy] = int(np.diff(sent[-1].regions.starts)[-1])
        epochs.append(sent[-1].payload.column(EPOCH)[-1].as_py() if EPOCH in sent[-1].payload.schema.names else None)
    assert boxes["region:renewed"] <= 2 < boxes["region"]
    assert epochs[0] is None and epochs[1] > 0
