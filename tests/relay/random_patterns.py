"""Random patterns and documents over few labels and texts, so that they meet often."""

from hypothesis import strategies as st

from tidings.relay.pattern import Axis, Pattern, PatternNode, Returned

LABELS = st.sampled_from(["a", "b", "c", "root", "@a", "@k"])
CONSTANTS = st.sampled_from(["", "x", "y", "xy", "1", "true", 'say "hi"'])
RETURNS = st.lists(st.sampled_from(Returned), unique=True, max_size=3).map(tuple)


@st.composite
def pattern_nodes(draw, labels=LABELS, constants=CONSTANTS, depth=3):
    below = pattern_nodes(labels, constants, depth - 1) if depth > 1 else st.nothing()
    return PatternNode(
        label=draw(labels),
        axis=draw(st.sampled_from(Axis)),
        branches=tuple(draw(st.lists(below, max_size=2))) if depth > 1 else (),
        constant=draw(st.none() | st.none() | constants),
        returns=draw(RETURNS),
        following=draw(st.none() | below) if depth > 1 else None,
    )


def patterns(labels=LABELS, constants=CONSTANTS):
    return pattern_nodes(labels, constants).map(Pattern).filter(lambda pattern: 0 < len(pattern.columns) <= 4)
