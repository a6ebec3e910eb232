"""The subscriptions of a replica by slot: ids and their sort order, lives, projections. Slots are reused."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from json.encoder import encode_basestring

import numpy as np

from tidings.kernels.lives import FAMILY, FOREVER, ID_START, ID_STOP, IS_NET, LABEL, PROJECTION, SINCE, UNTIL, new_lives
from tidings.kernels.rows import I64, NONE, U8
from tidings.model.codes import BoolArray

_GAP = 2**31
_LABEL_MAX = 2**61
_BLOCK = 512
_ID_BYTES = 280
"""Approximate bytes of an id in `Subscriptions` and `IdOrder`, characters left out: an object, two entries of dictionaries."""
_MERGE_SHARE = 64
"""New ids are inserted one by one if there are at least this many known ids for each; else all ids are sorted again."""


class IdOrder:
    """Order maintenance: gives each id a number (label) such that labels sort like ids.

    A new id gets a label midway between those of its neighbours; when there is none left, all ids are labelled anew. Ids are
    kept in sorted blocks of at most 2 * _BLOCK, so that an insertion moves no more than one block.
    """

    def __init__(self) -> None:
        self._blocks: list[list[str]] = []
        self._firsts: list[str] = []
        """The first id of each block."""
        self._label_of: dict[str, int] = {}

    def __len__(self) -> int:
        return len(self._label_of)

    def add(self, ids: Sequence[str]) -> bool:
        """Adds ids. Returns True if labels of ids that were there before may have changed."""
        fresh = [id for id in dict.fromkeys(ids) if id not in self._label_of]
        if len(fresh) * _MERGE_SHARE > len(self):
            self._replace(sorted([*self._label_of, *fresh]))
            return True
        has_changed = False
        for id in fresh:
            has_changed |= self._insert(id)
        return has_changed

    def of(self, id: str) -> int:
        return self._label_of[id]

    def keep(self, ids: Sequence[str]) -> None:
        """Forgets all ids but these. Labels may change."""
        self._replace(sorted(ids))

    def _replace(self, ids: list[str]) -> None:
        gap = min(_GAP, _LABEL_MAX // (len(ids) + 1))
        self._blocks = [ids[start : start + _BLOCK] for start in range(0, len(ids), _BLOCK)]
        self._firsts = [block[0] for block in self._blocks]
        self._label_of = {id: gap * (i + 1) for i, id in enumerate(ids)}

    def _insert(self, id: str) -> bool:
        number = max(0, bisect_right(self._firsts, id) - 1)
        block = self._blocks[number]
        at = bisect_right(block, id)
        below = self._label_of[block[at - 1]] if at else 0
        if at < len(block):
            above = self._label_of[block[at]]
        elif number + 1 < len(self._blocks):
            above = self._label_of[self._firsts[number + 1]]
        else:
            above = below + 2 * _GAP
        block.insert(at, id)
        self._firsts[number] = block[0]
        if len(block) > 2 * _BLOCK:
            self._blocks[number : number + 1] = [block[:_BLOCK], block[_BLOCK:]]
            self._firsts.insert(number + 1, block[_BLOCK])
        label = self._label_of[id] = (below + above) // 2
        if label == below or above >= _LABEL_MAX:
            self._replace([id for block in self._blocks for id in block])
            return True
        return False


class Subscriptions:
    """Ids, lives and projections of subscriptions (evaluators hold the queries). Arrays are replaced when they grow."""

    def __init__(self) -> None:
        self.ids: list[str] = []
        """[slots]: the subscription's id; empty text where the slot is free."""
        self.slots: dict[str, int] = {}
        """Id -> slot of every living subscription."""
        self._free: list[int] = []
        self._order = IdOrder()
        self.lives = new_lives(0)
        self.serial = np.empty(0, np.int64)
        """[slots]: number of the subscription's life, never used twice."""
        self.form = np.empty(0, np.int64)
        """[slots]: number of the form of the home point."""
        self._lives_so_far = 0
        self.id_text: U8 = np.zeros(1024, np.uint8)
        self._text_end = 0
        self._text_dead = 0
        self._id_characters = 0

    def __len__(self) -> int:
        return len(self.ids) - len(self._free)

    @property
    def nbytes(self) -> int:
        """Approximate bytes: arrays, and ids as texts with their entries in dictionaries."""
        arrays = self.lives.nbytes + self.serial.nbytes + self.form.nbytes + self.id_text.nbytes
        return arrays + self._id_characters + _ID_BYTES * len(self) + 8 * len(self.ids)

    def is_taken(self, slots: I64) -> BoolArray:
        """Whether each of the slots has a subscription, [slots]."""
        return np.array([self.ids[slot] != "" for slot in slots.tolist()], np.bool_)

    def take(self, count: int) -> list[int]:
        """Returns `count` free slots, which count as in use from now on."""
        reused = [self._free.pop() for _ in range(min(count, len(self._free)))]
        fresh = count - len(reused)
        first = len(self.ids)
        self.ids.extend([""] * fresh)
        if len(self.ids) > len(self.lives):
            lives = new_lives(max(len(self.ids), 3 * len(self.lives) // 2, 64))
            lives[: len(self.lives)] = self.lives
            self.lives = lives
            self.serial, self.form = np.resize(self.serial, len(lives)), np.resize(self.form, len(lives))
        return [*reused, *range(first, first + fresh)]

    def enter(
        self,
        slots: Sequence[int],
        ids: Sequence[str],
        form: Sequence[int],
        family: Sequence[int],
        projection: Sequence[int],
        is_net: Sequence[bool],
    ) -> None:
        """Enters subscriptions that the coming micro-batch creates. All arguments: [subscriptions]."""
        at = np.array(slots, np.int64)
        self.form[at] = form
        lives = self.lives
        lives[at, SINCE], lives[at, UNTIL] = FOREVER, FOREVER
        lives[at, FAMILY], lives[at, PROJECTION], lives[at, IS_NET] = family, projection, is_net
        self.serial[at] = self._lives_so_far + np.arange(len(at))
        self._lives_so_far += len(at)
        for slot, id in zip(slots, ids, strict=True):
            self.ids[slot] = id
        self._id_characters += sum(map(len, ids))
        texts = [encode_basestring(id).encode() for id in ids]
        ends = np.cumsum([len(text) for text in texts])
        data = np.frombuffer(b"".join(texts), np.uint8)
        if self._text_end + len(data) > len(self.id_text):
            longer = np.zeros(max(self._text_end + len(data), 2 * len(self.id_text)), np.uint8)
            longer[: self._text_end] = self.id_text[: self._text_end]
            self.id_text = longer
        self.id_text[self._text_end : self._text_end + len(data)] = data
        lives[at, ID_STOP] = self._text_end + ends
        lives[at, ID_START] = self._text_end + ends - np.diff(ends, prepend=0)
        self._text_end += len(data)
        if self._order.add(ids):
            self._relabel()
        else:
            for slot, id in zip(slots, ids, strict=True):
                lives[slot, LABEL] = self._order.of(id)

    def restore(
        self,
        slots: Sequence[int],
        ids: Sequence[str],
        form: Sequence[int],
        family: Sequence[int],
        projection: Sequence[int],
        is_net: Sequence[bool],
    ) -> None:
        """Enters the subscriptions of a dump in the slots they had. Called on an empty object."""
        self.take(max(slots, default=-1) + 1)
        self.enter(slots, ids, form, family, projection, is_net)
        self.begin(np.array(slots, np.int64))
        self.slots = dict(zip(ids, slots, strict=True))
        self._free = sorted({*range(len(self.ids))} - {*slots}, reverse=True)

    def begin(self, created: I64) -> None:
        """Ends the micro-batch that created these slots: from now on the subscriptions hear every change."""
        self.lives[created, SINCE] = NONE

    def leave(self, slots: Sequence[int]) -> None:
        """Frees the slots of dropped subscriptions."""
        for slot in slots:
            self._id_characters -= len(self.ids[slot])
            self.ids[slot] = ""
            self._text_dead += int(self.lives[slot, ID_STOP] - self.lives[slot, ID_START])
        self._free.extend(slots)
        if not len(self):
            self._order.keep([])
            self._text_end = self._text_dead = 0
        elif len(self._order) > 2 * len(self) + 1024:
            self._order.keep(list({id for id in self.ids if id}))
            self._relabel()
        if 2 * self._text_dead > self._text_end > 1 << 16:
            self._compact()

    def _relabel(self) -> None:
        for slot, id in enumerate(self.ids):
            if id:
                self.lives[slot, LABEL] = self._order.of(id)

    def _compact(self) -> None:
        living = [slot for slot, id in enumerate(self.ids) if id]
        parts = [self.id_text[self.lives[slot, ID_START] : self.lives[slot, ID_STOP]] for slot in living]
        end = 0
        for slot, part in zip(living, parts, strict=True):
            self.lives[slot, ID_START], self.lives[slot, ID_STOP] = end, end + len(part)
            end += len(part)
        self.id_text = np.concatenate([*parts, np.zeros(1024, np.uint8)])
        self._text_end, self._text_dead = end, 0
