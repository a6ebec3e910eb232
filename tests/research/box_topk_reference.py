"""What `BoxTopkIndex` means: the k best of a box, recomputed; and a check of all that the arrays promise."""

from __future__ import annotations

from research.strategies.topk.kernels.box_topk import BoxTopkIndex
from research.strategies.topk.kernels.box_topk.layout import (
    BLOCK,
    BLOCK_MAX,
    BLOCKS,
    COLUMN,
    COUNT,
    INT64_MAX,
    INT64_MIN,
    IS_LEAF,
    LEFT,
    NOBODY,
    NODES,
    PARENT,
    RIGHT,
    ROOT,
    SET,
    VALUE,
    Tree,
    Y,
)

Numbers = tuple[int, ...]
"""x_1 .. x_d, y and tie of an entry."""
Point = tuple[int, ...]
"""lo_1, hi_1 .. lo_d, hi_d."""


def is_inside(numbers: Numbers, point: Point) -> bool:
    return all(lo <= x <= hi for lo, x, hi in zip(point[::2], numbers[:-2], point[1::2], strict=True))


def k_best(entries: dict[int, Numbers], k: int, point: Point) -> list[int]:
    """The entries that a point holds, best first: the definition."""
    return sorted((e for e, numbers in entries.items() if is_inside(numbers, point)), key=lambda e: entries[e][-2:])[:k]


def items_below(tree: Tree, node: int, parent: int) -> list[list[int]]:
    """The items below a node, whose links, counts and bounds are checked."""
    links = tree.links[node].tolist()
    y = int(tree.head[Y])
    assert links[PARENT] == parent
    if links[LEFT] == IS_LEAF:
        assert links[COUNT] <= BLOCK_MAX
        items = tree.pool[links[BLOCK], :, : links[COUNT]].T.tolist()
    else:
        left, right = items_below(tree, links[LEFT], node), items_below(tree, links[RIGHT], node)
        assert all(item[links[COLUMN]] <= links[VALUE] for item in left)
        assert all(item[links[COLUMN]] > links[VALUE] for item in right)
        items = left + right
        assert 2 * len(items) > BLOCK_MAX
    assert len(items) == links[COUNT]
    low, high = tree.bounds[node].tolist()
    for column in range(y):
        numbers = [item[column] for item in items]
        assert low[column] == min(numbers, default=INT64_MAX)
        assert high[column] == max(numbers, default=INT64_MIN)
    keys = [item[y : y + 2] for item in items]
    assert high[y:] == max(keys, default=[INT64_MIN] * 2)
    assert low[y:] == min(keys, default=[INT64_MAX] * 2)
    return items


def items_of(tree: Tree) -> list[list[int]]:
    """All items of a tree, which is checked; and nothing is lost of its nodes and blocks."""
    if tree.head[ROOT] == NOBODY:
        return []
    items = items_below(tree, int(tree.head[ROOT]), NOBODY)
    inner = leaves = 0
    waiting = [int(tree.head[ROOT])]
    while waiting:
        links = tree.links[waiting.pop()].tolist()
        if links[LEFT] == IS_LEAF:
            leaves += 1
        else:
            inner += 1
            waiting += [links[LEFT], links[RIGHT]]
    assert (inner + leaves, leaves) == (tree.head[NODES], tree.head[BLOCKS])
    return items


def check_invariants(
    index: BoxTopkIndex, entries: dict[int, dict[int, Numbers]], points: dict[int, list[Point]]
) -> None:
    """The trees are sound, and have just these entries of sets, and these points, that hold what they should."""
    found = {(item[-1], item[SET], tuple(item[1:-1])) for item in items_of(index._entries)}
    assert found == {(e, of, numbers) for of, part in entries.items() for e, numbers in part.items()}
    assert len(index) == len(found)
    expected = {(of, *point, 0, 0, part.count(point)) for of, part in points.items() for point in part}
    assert {tuple(item) for item in items_of(index._points)} == expected
