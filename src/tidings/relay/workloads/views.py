"""Random views over documents of XMark's auction site, with the statistics of the published view sets.

A view is a random walk down the schema with branches, then thinned out:

    site/regions/africa/item/name           the walk, 3 to 8 steps; children that stand first in the schema are more popular
    site/regions/africa/item[/@id]/name     branches of one or two steps, anywhere on it
    //site//africa[//@id]//name             some inner nodes are left out, and // stands for them
    //site//africa[//@id="amber"]//name{val}    values compared and returned at the leaves, subtrees returned further up

The published set of 100,000 distinct views has 6.13 nodes, 2.52 nodes that return something and 0.72 predicates per view; here
they are 6.19, 2.41 and 0.70. Distinct means that no two differ in the order of branches alone.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from tidings.relay.pattern import Axis, Pattern, PatternNode, Returned
from tidings.relay.workloads.dtd import ELEMENTS, ROOT, VALUES, has_value
from tidings.relay.workloads.uniforms import Uniforms, cumulated_zipf, zipf

DEPTH_MIN, DEPTH_MAX = 3, 8
"""Steps of the walk, unless it comes to a leaf of the schema before."""
NODES_MIN = 3
_POPULARITY = 0.6
"""Exponent of the shares of children, by their order in the schema."""
_BRANCH = 0.65
"""Share of views with another branch, among those with as many already."""
_LONG_BRANCH = 0.35
_TRIES = 5
_DROPPED = 0.25
"""Share of inner nodes that are left out."""
_DESCENDANT = 0.10
"""Share of // among the other edges."""
_ANCHORED = 0.35
_PREDICATE = 0.465
"""Share of leaves with a predicate, among those with a value: 0.23 of all leaves."""
_VAL = 0.77
_CONT = 0.10
_SAME_POPULARITY = 0.8
"""Exponent of the shares of distinct views among duplicates."""

_CHILDREN = {label: cumulated_zipf(len(element.labels), _POPULARITY) for label, element in ELEMENTS.items()}


@dataclass(slots=True)
class _Step:
    """A node of a view in the making; children from the oldest on, the walk's own first."""

    label: str
    axis: Axis = Axis.CHILD
    children: list[_Step] = field(default_factory=list)


def distinct_views(seed: int, values: int = len(VALUES)) -> Iterator[Pattern]:
    """Views without end, no two of them equal up to the order of branches. values: how many predicates choose from."""
    uniforms = Uniforms(np.random.default_rng([seed, 0]))
    value_shares = cumulated_zipf(values, 1.0)
    seen: set[str] = set()
    while True:
        pattern = _view(uniforms, value_shares)
        if pattern is not None and pattern.canonical.text not in seen:
            seen.add(pattern.canonical.text)
            yield pattern


def repeated_views(seed: int, views: int, distinct: int, values: int = len(VALUES)) -> Iterator[Pattern]:
    """So many views of which so many are distinct: each comes at least once, popular ones often, with branches in any order."""
    rng = np.random.default_rng([seed, 1])
    different = [pattern for pattern, _ in zip(distinct_views(seed, values), range(distinct), strict=False)]
    more = rng.choice(distinct, size=views - distinct, p=zipf(distinct, _SAME_POPULARITY, 0.0))
    uniforms = Uniforms(rng)
    for number in rng.permutation(np.concatenate([np.arange(distinct), rng.permutation(distinct)[more]])).tolist():
        yield Pattern(_with_branches_in_any_order(different[number].root, uniforms))


def _view(uniforms: Uniforms, value_shares: Sequence[float]) -> Pattern | None:
    """None for one that is too small, or returns nothing."""
    pattern = Pattern(_finished(_thinned(_walk(uniforms), uniforms), uniforms, value_shares))
    return pattern if pattern.columns and len(pattern.nodes) >= NODES_MIN else None


def _walk(uniforms: Uniforms) -> _Step:
    depth = DEPTH_MIN + uniforms.below(DEPTH_MAX - DEPTH_MIN + 1)
    path = _path(_Step(ROOT), depth - 1, uniforms)
    while uniforms.share() < _BRANCH:
        # Not at the last one, which would only make the walk longer.
        below = path[uniforms.below(len(path) - 1)]
        _path(below, 2 if uniforms.share() < _LONG_BRANCH else 1, uniforms)
    return path[0]


def _path(top: _Step, length: int, uniforms: Uniforms) -> list[_Step]:
    """The step and `length` more below it, fewer at a leaf of the schema."""
    path = [top]
    while len(path) <= length or _is_empty(path[-1].label):
        upper = path[-1]
        label = _child(upper, uniforms)
        if label is None:
            break
        path.append(_Step(label))
        upper.children.append(path[-1])
    return path


def _child(upper: _Step, uniforms: Uniforms) -> str | None:
    """One that the step has not yet: a second one would be met by what meets the first. None if it is hard to find."""
    cumulated = _CHILDREN.get(upper.label)
    if not cumulated or (upper.children and ELEMENTS[upper.label].is_either):
        return None
    taken = [child.label for child in upper.children]
    for _ in range(_TRIES):
        label = ELEMENTS[upper.label].labels[uniforms.pick(cumulated)]
        if label not in taken:
            return label
    return None


def _is_empty(label: str) -> bool:
    """Whether an element has nothing but attributes: one of them follows."""
    return label in ELEMENTS and not ELEMENTS[label].children and not ELEMENTS[label].has_text


def _thinned(root: _Step, uniforms: Uniforms) -> _Step:
    root.axis = Axis.CHILD if uniforms.share() < _ANCHORED else Axis.DESCENDANT
    root.children = _kept(root.children, uniforms)
    return root


def _kept(steps: list[_Step], uniforms: Uniforms) -> list[_Step]:
    found: list[_Step] = []
    for step in steps:
        is_inner = bool(step.children)
        step.children = _kept(step.children, uniforms)
        if is_inner and uniforms.share() < _DROPPED:
            for child in step.children:
                child.axis = Axis.DESCENDANT
            found += step.children
            continue
        if uniforms.share() < _DESCENDANT:
            step.axis = Axis.DESCENDANT
        found.append(step)
    return found


def _finished(step: _Step, uniforms: Uniforms, value_shares: Sequence[float]) -> PatternNode:
    """With predicates and returns."""
    children = [_finished(child, uniforms, value_shares) for child in step.children]
    constant = None
    returns: tuple[Returned, ...] = ()
    if children:
        # Nobody asks for whole documents.
        if step.label != ROOT and uniforms.share() < _CONT:
            returns = (Returned.CONT,)
    else:
        if has_value(step.label) and uniforms.share() < _PREDICATE:
            constant = VALUES[uniforms.pick(value_shares)]
        if uniforms.share() < _VAL:
            returns = (Returned.VAL,)
    # The walk goes on behind the branches.
    branches, following = tuple(children[1:]), children[0] if children else None
    return PatternNode(step.label, step.axis, branches, constant, returns, following)


def _with_branches_in_any_order(node: PatternNode, uniforms: Uniforms) -> PatternNode:
    children = [_with_branches_in_any_order(child, uniforms) for child in node.children]
    for last in range(len(children) - 1, 0, -1):
        other = uniforms.below(last + 1)
        children[last], children[other] = children[other], children[last]
    following = children.pop() if children else None
    return PatternNode(node.label, node.axis, tuple(children), node.constant, node.returns, following)
