"""The answer of a subscription as its notifications leave it: a bag (multiset) of rows, each kept byte for byte as told."""

from __future__ import annotations

from collections import Counter

import msgspec


class RowChange(msgspec.Struct):
    """One change of an answer. Rows are JSON texts; old: only of an update."""

    op: str
    row: msgspec.Raw
    old: msgspec.Raw = msgspec.Raw()


class Tail(msgspec.Struct):
    """What a notification says, whoever is told it."""

    seq: int
    snapshot: bool
    changes: list[RowChange]
    tx: str | None = None


_decode = msgspec.json.Decoder(Tail).decode


def decode_tail(text: bytes) -> Tail:
    """The tail of a notification line, with or without its newline."""
    return _decode(b'{"subscription": ""' + text)


class RowBag:
    """Rows of an answer, and the seq of the last notification folded into it. Rows that look alike are counted."""

    __slots__ = ("seq", "texts")

    def __init__(self) -> None:
        self.texts: Counter[bytes] = Counter()
        """How often each row is in the answer; never 0."""
        self.seq = 0

    def fold(self, tail: Tail) -> None:
        """Does to the rows what a notification says."""
        texts = self.texts
        if tail.snapshot:
            texts.clear()
        for change in tail.changes:
            gone = bytes(change.row if change.op == "delete" else change.old)
            if gone:
                texts[gone] -= 1
                if not texts[gone]:
                    del texts[gone]
            if change.op != "delete":
                texts[bytes(change.row)] += 1
        self.seq = tail.seq

    def fold_text(self, tail: bytes) -> None:
        self.fold(decode_tail(tail))

    def rows(self) -> list[bytes]:
        """JSON texts of the rows; a row that is there twice stands there twice."""
        return list(self.texts.elements())

    def copy(self) -> RowBag:
        bag = RowBag()
        bag.texts, bag.seq = self.texts.copy(), self.seq
        return bag

    def __len__(self) -> int:
        return self.texts.total()
