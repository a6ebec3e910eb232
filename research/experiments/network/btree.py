"""The distributed B-tree of paper 002, counted: brokers own stretches of keys, and a tree over them carries messages.

A message for a range of keys goes from the server to the root and down to every broker that has a part of the range. Entries
that change their keys travel from the broker of the old key, up and down the tree, to that of the new one; a broker that gets
more than twice its share divides it with one that has little, whose own goes to a neighbour.
"""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import I64
from tidings.network.overlays import FANOUT, runs_of_tree

ENTRY_BYTES = 56
"""A header, and what a message is about: a range of keys and a value, or an entry and its key."""
UNICAST_BYTES = 48
"""A header, the id of a subscription, and a value."""


class BTree:
    """Brokers 0 .. n - 1 in the order of their keys; `first[i]` is the least key of broker i. Broker 0 is the root."""

    def __init__(self, keys: I64, universe: int, brokers: int) -> None:
        """keys: of the entries at first, 0 .. universe - 1; there may be several of one key."""
        self.brokers = brokers
        self.entries = np.bincount(keys, minlength=universe)
        ordered = np.sort(keys)
        self.first = (
            ordered[len(ordered) * np.arange(brokers) // brokers] if len(ordered) else np.zeros(brokers, np.int64)
        )
        self.first[0] = 0
        self._count()
        child_starts, child, ends = runs_of_tree(brokers)
        self._end = np.array(ends)
        self.parent = np.full(brokers, -1, np.int64)
        for node in range(brokers):
            self.parent[child[child_starts[node] : child_starts[node + 1]]] = node
        self.depth = np.zeros(brokers, np.int64)
        for node in range(1, brokers):
            # A parent comes before its children.
            self.depth[node] = self.depth[self.parent[node]] + 1
        self.sent = np.zeros(brokers + 1, np.int64)
        """Messages that left each broker, and the server, since this was last cleared."""

    def _count(self) -> None:
        ends = np.concatenate([[0], np.cumsum(self.entries)])
        self.held = np.diff(ends[np.append(self.first, len(self.entries))])

    def broker_of(self, keys: I64) -> I64:
        """Of several brokers with one first key, all but the last are empty."""
        found: I64 = np.searchsorted(self.first, keys, "right") - 1
        return found

    def tell(self, low: int, high: int) -> int:
        """Sends a message to all brokers that have a part of a range of keys; returns the messages it takes."""
        first, last = self.broker_of(np.array([low, high])).tolist()
        met = np.zeros(self.brokers, np.bool_)
        node, path = self.parent, np.arange(first, last + 1)
        while len(path):
            met[path] = True
            path = np.unique(node[path])
            path = path[path >= 0]
            path = path[~met[path]]
        told = np.flatnonzero(met)
        self._left(self.parent[told])
        return len(told)

    def move(self, old: I64, new: I64) -> int:
        """Entries change their keys; returns the messages that this takes."""
        np.subtract.at(self.entries, old, 1)
        np.add.at(self.entries, new, 1)
        source, target = self.broker_of(old), self.broker_of(new)
        np.subtract.at(self.held, source, 1)
        np.add.at(self.held, target, 1)
        return self._travel(source, target) + self._balance()

    def insert(self, new: I64) -> int:
        """Entries come, from the root; returns the messages that this takes."""
        np.add.at(self.entries, new, 1)
        target = self.broker_of(new)
        np.add.at(self.held, target, 1)
        return self._travel(np.zeros_like(target), target) + self._balance()

    def _travel(self, source: I64, target: I64) -> int:
        """Each from one broker to another: up the tree until the target is below, then down."""
        away = source != target
        at, to = source[away], target[away]
        messages = 0
        while len(at):
            is_below = (at <= to) & (to < self._end[at])
            up = ~is_below
            self._left(at)
            messages += len(at)
            # Those on the way down are counted from the target's side.
            to_parent = self.parent[to]
            at, to = np.where(up, self.parent[at], at), np.where(is_below, to_parent, to)
            is_there = at == to
            at, to = at[~is_there], to[~is_there]
        return messages

    def _left(self, brokers: I64) -> None:
        """A message leaves each of these; -1 is the server."""
        self.sent += np.bincount(np.where(brokers < 0, self.brokers, brokers), minlength=self.brokers + 1)

    def _balance(self) -> int:
        messages = 0
        share = max(1, int(self.held.sum()) // self.brokers)
        for _ in range(self.brokers):
            heavy = int(self.held.argmax())
            if self.held[heavy] <= 2 * share + FANOUT:
                break
            start = int(self.first[heavy])
            stop = int(self.first[heavy + 1]) if heavy + 1 < self.brokers else len(self.entries)
            ends = np.cumsum(self.entries[start:stop])
            cut = start + int(np.searchsorted(ends, self.held[heavy] // 2)) + 1
            upper = int(self.held[heavy] - ends[cut - 1 - start])
            light = int(self.held.argmin())
            if upper == 0 or light == heavy:
                # All have one key: they cannot be divided.
                break
            moved = int(self.held[light]) + upper
            # The light one's keys go to the broker before it, and it takes the upper half of the heavy one's.
            kept = np.delete(self.first, light) if light else np.delete(self.first, 1)
            self.first = np.insert(kept, np.searchsorted(kept, start, "right"), cut)
            self._count()
            self.sent[heavy] += upper
            self.sent[light] += moved - upper
            messages += moved
        return messages
