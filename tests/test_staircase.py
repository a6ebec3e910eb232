"""Where a change of a top-k matters in the plane of ranges: as recomputing every range says."""

from hypothesis import given
from hypothesis import strategies as st

from tidings.painting.staircase import entering, staircase

X = st.integers(0, 6)
ENDS = range(-1, 8)


def first(ranking, low, high, k):
    return [key for key, x in ranking if low <= x <= high][:k]


def covered(tiles, low, high):
    return sum(tile.lo[0] <= low <= tile.hi[0] and tile.lo[1] <= high <= tile.hi[1] for tile in tiles)


@st.composite
def changes(draw):
    """(before, after, key): rankings, best first, of which one has a row with the key elsewhere, or not at all."""
    others = [(str(number), x) for number, x in enumerate(draw(st.lists(X, max_size=9)))]
    before, after = ([*others] for _ in range(2))
    for ranking in (before, after):
        if draw(st.integers(0, 4)):
            ranking.insert(draw(st.integers(0, len(others))), ("moved", draw(X)))
    return before, after


@given(st.lists(X, max_size=9), st.integers(1, 4))
def test_a_row_matters_to_the_ranges_that_have_it_among_their_first(xs, k):
    ranking = [*enumerate(xs)]
    for place, x in ranking:
        tiles = staircase(x, xs[:place], k)
        assert len(tiles) <= k
        for low in ENDS:
            for high in ENDS:
                assert covered(tiles, low, high) == (place in first(ranking, low, high, k))


@given(changes(), st.integers(1, 4))
def test_rows_enter_where_another_has_left(change, k):
    before, after = change
    found = dict(entering(before, after, "moved", k))
    assert list(found) == sorted(found, key=int)
    assert all(found.values())
    for low in ENDS:
        for high in ENDS:
            was, now = (first(ranking, low, high, k) for ranking in change)
            for key, _ in before:
                is_new = key != "moved" and key in now and key not in was
                assert covered(found.get(key, ()), low, high) == is_new, (key, low, high)
