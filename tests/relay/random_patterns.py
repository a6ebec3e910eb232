"""Random patterns and documents over few labels and texts, so that they meet often."""

import json
from dataclasses import replace

from hypothesis import assume
from hypothesis import strategies as st

from tidings.relay.json_document import parse_json
from tidings.relay.pattern import Axis, Pattern, PatternNode, Returned
from tidings.relay.xml_document import parse_xml

LABELS = st.sampled_from(["a", "b", "c", "root", "@a", "@k"])
CONSTANTS = st.sampled_from(["", "x", "y", "xy", "1", "true", 'say "hi"'])
RETURNS = st.lists(st.sampled_from(Returned), unique=True, max_size=2).map(tuple)


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


TEXTS = st.sampled_from(["", "", "x", "y", "1"])
ELEMENTS = st.sampled_from(["a", "b", "root"])
ATTRIBUTES = st.dictionaries(st.sampled_from(["a", "k"]), st.sampled_from(["x", "xy"]))


@st.composite
def xml_documents(draw, nodes_max=12):
    """Grown by hanging each node below an earlier one, so that deep and broad ones are as likely."""
    elements = [[] for _ in range(draw(st.integers(1, nodes_max)))]
    for number in range(1, len(elements)):
        elements[draw(st.integers(0, number - 1))].append(number)

    def text(number):
        name = draw(ELEMENTS)
        attributes = "".join(f' {key}="{value}"' for key, value in draw(ATTRIBUTES).items())
        below = "".join(text(child) + draw(TEXTS) for child in elements[number])
        return f"<{name}{attributes}>{draw(TEXTS)}{below}</{name}>"

    return parse_xml(text(0).encode())


def json_documents():
    leaves = st.sampled_from(["", "x", "y", 1, True, None])
    keys = st.sampled_from(["a", "b", "root", "@a"])

    def below(inner):
        return st.dictionaries(keys, inner, min_size=1) | st.lists(inner, min_size=2, max_size=3) | st.just([])

    objects = st.dictionaries(keys, st.recursive(leaves, below, max_leaves=8), min_size=1)
    return (objects | st.lists(objects, max_size=3)).map(lambda value: parse_json(json.dumps(value).encode()))


@st.composite
def patterns_within(draw, document):
    """Patterns that the document matches, but for a few slips."""

    def node(image, above, depth):
        below = range(image + 1, document.ends[image])
        images = draw(st.lists(st.sampled_from(below), max_size=3 if depth == 1 else 2)) if below and depth < 4 else []
        children = [node(child, image, depth + 1) for child in images]
        following = children.pop() if children and draw(st.booleans()) else None
        is_child = document.parents[image] == above and draw(st.booleans())
        slip = draw(st.integers(0, 19))
        constant = draw(CONSTANTS) if slip == 1 else document.val(image) if slip < 4 else None
        label = draw(LABELS) if slip == 19 else document.labels[image]
        axis = Axis.CHILD if is_child or slip == 18 else Axis.DESCENDANT
        return PatternNode(label, axis, tuple(children), constant, draw(RETURNS), following)

    pattern = Pattern(node(draw(st.integers(0, len(document) - 1).map(lambda n: n // 2)), -1, 1))
    assume(len(pattern.columns) > 0 and len(pattern.nodes) <= 7)
    return pattern


@st.composite
def generalised(draw, pattern, returns=RETURNS):
    """Patterns that embed in this one, mostly: branches and steps left out or in another order, `/` made `//`, no predicate."""

    def node(step):
        children = [below for child in draw(st.permutations(step.children)) for below in kept(child)]
        following = children.pop() if children and draw(st.booleans()) else None
        constant = step.constant if draw(st.integers(0, 3)) else None
        axis = step.axis if draw(st.integers(0, 3)) else Axis.DESCENDANT
        return replace(
            step, axis=axis, branches=tuple(children), constant=constant, returns=draw(returns), following=following
        )

    def kept(step):
        match draw(st.integers(0, 11)):
            case 0:
                return []
            case 1:
                return [replace(below, axis=Axis.DESCENDANT) for child in step.children for below in kept(child)]
            case 2:
                return [node(step), node(step)]
            case _:
                return [node(step)]

    found = Pattern(node(pattern.root))
    assume(len(found.columns) > 0)
    return found


@st.composite
def rewritings(draw, target):
    """Sets of patterns of which many can compute the target together."""
    rich = st.sampled_from([(Returned.CONT,), (Returned.VAL, Returned.ID), (Returned.VAL,), (Returned.ID,)])
    return draw(st.lists(generalised(target, returns=rich), min_size=1, max_size=3))
