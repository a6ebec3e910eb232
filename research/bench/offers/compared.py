"""Whether all ways of matching found the same pairs for the same publications."""

from __future__ import annotations

import numpy as np

from tidings.kernels.arrays import I64

_EXAMPLES = 5


class Compared:
    """Pairs of a publication and a subscription by number, [pairs, 2]; each way is compared with the first."""

    def __init__(self, place: str) -> None:
        self._place = place
        self._found: dict[str, tuple[int, set[tuple[int, int]]]] = {}

    def add(self, way: str, found: tuple[int, I64]) -> None:
        """found: (publications that were matched, pairs). AssertionError if they are not those of the first way.

        Only publications that both have matched are compared.
        """
        count, pairs = found[0], {(p, s) for p, s in found[1].tolist()}
        if len(pairs) != len(found[1]):
            raise AssertionError(f"{self._place}: {way} finds pairs twice")
        for first, (least, expected) in self._found.items():
            both = min(least, count)
            ours, theirs = ({pair for pair in side if pair[0] < both} for side in (expected, pairs))
            if ours != theirs:
                shown = sorted(ours ^ theirs)[:_EXAMPLES]
                raise AssertionError(
                    f"{self._place}: {way} and {first} differ in {len(ours ^ theirs)} pairs, as {shown}"
                )
            break
        self._found[way] = count, pairs

    def note(self) -> str:
        if not self._found:
            return f"{self._place}: nothing compared"
        each = ", ".join(f"{way} ({len(pairs):,} of {count:,})" for way, (count, pairs) in self._found.items())
        same = "pairs are the same" if len(self._found) > 1 else "nothing to compare with"
        return f"{self._place}: {same}: {each} publications"


def ordered(publication: I64, subscription: I64) -> I64:
    """Pairs, [pairs, 2], in order."""
    pairs = np.stack([publication, subscription], axis=1)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
