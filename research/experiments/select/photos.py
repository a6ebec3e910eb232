"""Ratings of products with photos: messages that carry whole rows, and messages whose photos travel apart (section I)."""

from __future__ import annotations

import base64
import json
from collections.abc import Sequence
from typing import Any

import numpy as np

from research.experiments.paper import Config, Rows, Say
from research.servers.message import MessageBatch
from research.servers.space import places
from research.stages.gateway import GatewayWork
from research.stages.staged import StagedEngine
from research.strategies.select.entering import HELD, LONG
from research.strategies.select.table_form import table_space
from tidings.model.codes import Int64Array
from tidings.model.points import Event
from tidings.sql import parse_catalog

CATALOG = "CREATE TABLE products (id INT PRIMARY KEY, rating DOUBLE, photo BINARY);"
_NEW_PHOTO = 0.01
"""Share of changes that bring another photo."""
_STEP = 2.0
"""By which ratings, from 0 to 100, move at most."""
_AT_ONCE = 100


def run(config: Config, seed: int, say: Say) -> Rows:
    rows = []
    for size in config["bytes"]:
        say(f"photos of {size:,} bytes")
        subscriptions, changes = _workload(config, size, seed)
        row: dict[str, Any] = {"photo_bytes": size}
        told = []
        for strategy in ("region", "entering"):
            run = _Run(strategy, subscriptions)
            lines = [run.feed(changes[at : at + _AT_ONCE]) for at in range(0, len(changes), _AT_ONCE)]
            told.append([line for part in lines for line in part])
            stats = run.engine.stats
            row[f"{strategy}_bytes"] = stats.message_bytes["select"]
            row[f"{strategy}_messages"] = stats.messages["select"]
            if strategy == "entering":
                row |= {"photos_received": run.received, "photos_held": run.held}
        assert told[0] == told[1], "notifications differ"
        row["notifications"] = len(told[0])
        rows.append(row)
    return rows


def _workload(config: Config, size: int, seed: int) -> tuple[list[bytes], list[bytes]]:
    rng = np.random.default_rng([seed, size])
    people, products = int(config["people"]), int(config["products"])
    low = rng.uniform(0, 95, people)
    high = np.minimum(100, low + rng.uniform(2, 30, people))
    subscriptions = [
        json.dumps({"id": f"s{i}", "sql": f"SELECT * FROM products WHERE rating BETWEEN {a:.3f} AND {b:.3f}"}).encode()
        for i, (a, b) in enumerate(zip(low, high, strict=True))
    ]
    ratings = rng.uniform(0, 100, products)
    photos = [_photo(rng, size) for _ in ratings]
    changes = []
    for seq in range(1, products + config["changes"] + 1):
        product = seq - 1 if seq <= products else int(rng.integers(products))
        if seq > products:
            ratings[product] = min(100.0, max(0.0, ratings[product] + rng.uniform(-_STEP, _STEP)))
            if rng.random() < _NEW_PHOTO:
                photos[product] = _photo(rng, size)
        row = {"id": product, "rating": round(float(ratings[product]), 3), "photo": photos[product]}
        changes.append(json.dumps({"seq": seq, "table": "products", "op": "upsert", "row": row}).encode())
    return subscriptions, changes


def _photo(rng: np.random.Generator, size: int) -> str:
    return base64.b64encode(rng.bytes(size)).decode()


class _Run:
    """An engine whose messages are counted: photos that reach subscriptions, and those among them that these held already."""

    def __init__(self, strategy: str, subscriptions: Sequence[bytes]) -> None:
        catalog = parse_catalog(CATALOG)
        self.engine = StagedEngine(catalog, {"select": strategy}, on_work=self._take, counts_bytes=True)
        self.engine.door.read(subscriptions)
        self.received = self.held = 0
        self._space = table_space(catalog.table("products"))
        self._points: Int64Array = np.empty((0, 0), np.int64)
        self._held: dict[int, tuple[bytes, Int64Array]] = {}
        """Product -> (its photo, who of the points holds that)."""

    def feed(self, lines: Sequence[bytes]) -> list[str]:
        return self.engine.feed(lines).notifications.lines()

    def _take(self, work: GatewayWork) -> None:
        for points in work.points:
            assert (points.event == np.int8(Event.CREATE)).all(), "nobody leaves"
            self._points = points.coords
        for messages in work.messages:
            if LONG + "photo" in messages.payload.schema.names:
                self._count(messages)

    def _count(self, messages: MessageBatch) -> None:
        """Follows who has the photo of each product: whoever was sent it and has wanted the product since."""
        regions, payload = messages.regions, messages.payload
        at = places(self._space.axes(self._space.comparable), messages.axes)
        points = self._points[:, at]
        tags = np.bitwise_or.reduceat(regions.tags, regions.starts[:-1])
        inside = np.stack(
            [
                ((points >= lo) & (points <= hi)).all(axis=1) * tag
                for lo, hi, tag in zip(regions.lo, regions.hi, regions.tags, strict=True)
            ]
        )
        reached = np.bitwise_or.reduceat(inside, regions.starts[:-1], axis=0)
        columns = [payload.column(name).to_pylist() for name in ("new.id", LONG + "photo")]
        # What a change brings to its receivers comes after its ratings here, so that nobody has it before.
        for i in np.lexsort((tags == HELD, messages.seq)).tolist():
            product, photo = (column[i] for column in columns)
            known, holders = self._held.get(product, (b"", np.zeros(len(points), np.bool_)))
            if tags[i] == HELD:
                some = reached[i] > 0
                self.received += int(some.sum())
                self.held += int((some & holders).sum()) if photo == known else 0
                self._held[product] = photo, (some | holders) if photo == known else some
            else:
                self._held[product] = known, holders & ((reached[i] & 2) > 0)
