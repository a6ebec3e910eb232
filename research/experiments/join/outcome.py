"""What the messages of changes come to: how many, their bytes where they leave, where they are carried and where they end."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np

from research.experiments.join.subscribers import Subscribers
from research.experiments.paper import Rows
from research.servers.message import MessageBatch
from research.strategies.join.payload import PLACED, SIDE
from research.wire import wire_sizes
from tidings.families.spec import Form
from tidings.model.codes import Int64Array
from tidings.model.region import Regions

Totals = Counter[str]

STRAWMEN = ("enum-j", "enum-sj", "rel-sel", "ref-j", "ref-j+")
SKYLINES = ("ref-sj:sub", "ref-sj:tup", "ref-sj:clu", "ref-sj:clu+")
OWN = ("ref-sj:tup+", "ref-sj:min")
"""Skylines that are not in the paper."""
BEST = "ref-sj:clu+"
LABELS = {
    "enum-j": "Enum-J",
    "enum-sj": "Enum-SJ",
    "rel-sel": "Rel-Sel",
    "ref-j": "Ref-J",
    "ref-j+": "Ref-J+",
    "ref-sj:sub": "Ref-SJ-Sub",
    "ref-sj:tup": "Ref-SJ-Tup",
    "ref-sj:clu": "Ref-SJ-Clu",
    "ref-sj:clu+": "Ref-SJ-Clu+",
    "ref-sj:tup+": "tup+ (ours)",
    "ref-sj:min": "min (ours)",
    "long-sj": "Long semijoins",
    "auto": "auto (ours)",
}

OUTPUT_BYTES_PER_US = 70 / 8
"""The paper's server writes its messages at 70 Mbit/s, and counts that as processing."""


SIZES = ("messages", "sent", "points", "description")
"""What `sizes` gives, per change or per skyline."""


def totals(sent: Iterable[MessageBatch], table: str, people: Subscribers) -> Totals:
    """Sums over the messages for changes of one table."""
    found: Totals = Counter()
    for messages in sent:
        if len(messages):
            found.update(sizes(messages, table))
            found.update(_reached(messages, people))
    return found


def sizes(messages: MessageBatch, table: str) -> dict[str, float]:
    """What is sent for changes of one table, whoever it reaches."""
    size, skylines = wire_sizes(messages), _skylines(messages, table)
    return {
        "messages": float(len(messages)),
        "sent": float(size.sum()),
        "skylines": float(np.count_nonzero(skylines)),
        "points": float(skylines.sum()),
        "description": float((size - wire_sizes(_without_regions(messages)))[skylines > 0].sum()),
    }


def _reached(messages: MessageBatch, people: Subscribers) -> dict[str, float]:
    """Where messages are carried and where they end; and the payloads among them: all of them, and those of the center."""
    reach = people.reach(messages)
    bytes_of = {
        "": wire_sizes(messages),
        "_notes": notes_of(messages),
        "_center_notes": notes_of(messages, people.table),
    }
    found = {"hops": reach.brokers.sum(), "deliveries": reach.deliveries.sum()}
    for kind, size in bytes_of.items():
        carried, delivered = (size * reach.brokers).sum(), (size * reach.deliveries).sum()
        found |= {f"carried{kind}": carried, f"delivered{kind}": delivered}
        # Unicast goes past the brokers; all else takes its last hop from one.
        found[f"last_hop{kind}"] = delivered + (carried if messages.target is None else 0)
        if kind:
            found[f"sent{kind}"] = size.sum()
    return {name: float(value) for name, value in found.items()}


def with_payload(found: Totals, payload: int, notes: str) -> Totals:
    """The same if some texts, which were empty, had so many bytes. notes: which of them, as `_reached` calls these."""
    more = {name: payload * found[f"{name}_{notes}"] for name in ("sent", "carried", "delivered", "last_hop")}
    return found + Counter(more)


def notes_of(messages: MessageBatch, table: str | None = None) -> Int64Array:
    """How many payloads each message has: of one table, or of any."""
    form = Form.from_key(messages.form)
    if messages.to:
        columns = ["note"] if table in (None, form.variant) else []
    else:
        numbers = (i for i, name in enumerate(form.shape.tables) if table in (None, name))
        columns = [f"{number}.note" for number in numbers]
    known = [messages.payload.column(name) for name in columns if name in messages.payload.schema.names]
    found: Int64Array = np.sum(
        [np.zeros(len(messages), np.int64), *(c.is_valid().to_numpy(False) for c in known)], axis=0
    )
    return found


def _skylines(messages: MessageBatch, table: str) -> Int64Array:
    """Boxes in which a row of the changed table itself is to be held, by message."""
    form = Form.from_key(messages.form)
    if messages.to:
        is_own = np.full(len(messages), form.variant == table)
    else:
        is_own = messages.payload.column(SIDE).to_numpy() == form.shape.tables.index(table)
    ends = np.concatenate([[0], np.cumsum(messages.regions.tags == PLACED)])
    starts = messages.regions.starts
    return np.where(is_own, ends[starts[1:]] - ends[starts[:-1]], 0)


def _without_regions(messages: MessageBatch) -> MessageBatch:
    none = messages.regions.take(np.empty(0, np.int64))
    return replace(messages, regions=Regions(none.lo, none.hi, none.tags, np.zeros(len(messages) + 1, np.int64)))


def per_change(found: Totals, changes: int) -> dict[str, float]:
    """Means over changes; what is said of skylines is per skyline."""
    means = {name: float(found[name]) / max(1, changes) for name in _MEANS}
    return means | {name: found[name] / max(1.0, found["skylines"]) for name in ("points", "description")}


_MEANS = ("us", "messages", "hops", "deliveries", "sent", "carried", "delivered", "last_hop")


def figures(rows: Rows, x: str, name: str) -> dict[Any, dict[str, float]]:
    """x -> strategy -> what was found, where there is anything."""
    found: dict[Any, dict[str, float]] = {}
    for row in rows:
        if name in row:
            found.setdefault(row[x], {})[row["strategy"]] = row[name]
    return found
