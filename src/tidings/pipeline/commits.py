"""Micro-batches of recorded lines that split no transaction."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice

from tidings.pipeline.ingest import UNREADABLE, tx_of


def micro_batches(lines: Iterable[bytes], sizes: Iterable[int]) -> Iterator[list[bytes]]:
    """The lines in micro-batches of these sizes, until either ends. One is longer where a transaction would be split."""
    source = iter(lines)
    ahead: list[bytes] = []
    for size in sizes:
        batch = ahead if size else []
        batch += islice(source, max(0, size - len(batch)))
        if size:
            ahead = []
        if size and not batch:
            return
        tx = open_tx(batch)
        if tx is not None:
            for line in source:
                if not goes_on(line, tx):
                    ahead = [line]
                    break
                batch.append(line)
        yield batch


def open_tx(lines: Sequence[bytes]) -> str | None:
    """The transaction that the next line may belong to; None if there is none."""
    for line in reversed(lines):
        tx = tx_of(line)
        if tx is not UNREADABLE:
            return tx  # type: ignore[no-any-return]
    return None


def goes_on(line: bytes, tx: str) -> bool:
    """Whether the transaction goes on with this line."""
    own = tx_of(line)
    return own is UNREADABLE or own == tx
