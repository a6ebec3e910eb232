"""Directory and repository against plain lists; both keep within their bounds."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tidings.network import payload_cache
from tidings.network.payload_cache import PayloadCache

STEPS = st.lists(
    st.tuples(
        st.sampled_from(["keep", "has", "mark", "links", "forget", "evict"]), st.integers(0, 6), st.integers(0, 3)
    ),
    max_size=60,
)


@given(STEPS, st.integers(0, 12))
def test_it_is_two_lists_in_order_of_use(steps, capacity):
    cache, held, links = PayloadCache(capacity), [], {}
    for step, payload, number in steps:
        if step == "keep":
            cache.keep(payload, number)
            held = [entry for entry in held if entry[0] != payload]
            if number <= capacity:
                held.append((payload, number))
                while sum(size for _, size in held) > capacity:
                    held.pop(0)
        elif step == "has":
            found = [entry for entry in held if entry[0] == payload]
            assert cache.has(payload) == bool(found)
            assert cache.size(payload) == (found[0][1] if found else -1)
            held = [entry for entry in held if entry not in found] + found
        elif step == "mark":
            cache.mark(payload, number)
            links.setdefault(payload, set()).add(number)
        elif step == "links":
            assert cache.links(payload) == links.setdefault(payload, set())
        elif step == "forget":
            cache.forget_link(number)
            for own in links.values():
                own.discard(number)
        else:
            cache.evict()
            held = []


def test_the_directory_forgets_what_was_not_used_for_longest():
    cache = PayloadCache(0)
    most = payload_cache.DIRECTORY_BYTES // payload_cache._ENTRY_BYTES
    for payload in range(most):
        cache.mark(payload, 1)
    assert cache.links(0) == {1}
    cache.mark(most, 1)
    assert cache.links(0) == {1} and cache.links(1) == set()
