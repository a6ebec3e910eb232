"""Patterns over XML by the standard library and nothing of ours: an evaluator as somebody else would write it."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ET
from collections.abc import Iterator
from dataclasses import dataclass, field

_STEP = re.compile(r"(//?)(@?[\w.-]+)")
_TAIL = re.compile(r'(?:="((?:[^"]|"")*)")?(?:\{([a-z,]+)\})?')


@dataclass
class Step:
    axis: str
    label: str
    below: list[Step] = field(default_factory=list)
    constant: str | None = None
    returns: list[str] = field(default_factory=list)
    order: list[Step] = field(default_factory=list)
    """The step and those below it, as their values stand in the text."""


@dataclass
class Node:
    label: str
    id: str
    val: str
    cont: str
    below: list[Node]


def read(text: str) -> Step:
    step, end = _path(text, 0)
    assert end == len(text)
    return step


def _path(text: str, at: int) -> tuple[Step, int]:
    found = _STEP.match(text, at)
    assert found, text[at:]
    step, at = Step(found[1], found[2]), found.end()
    while text.startswith("[", at):
        branch, at = _path(text, at + 1)
        step.below.append(branch)
        step.order += branch.order
        at += 1
    tail = _TAIL.match(text, at)
    assert tail
    step.constant = None if tail[1] is None else tail[1].replace('""', '"')
    step.returns = tail[2].split(",") if tail[2] else []
    step.order.append(step)
    at = tail.end()
    if at < len(text) and text[at] == "/":
        following, at = _path(text, at)
        step.below.append(following)
        step.order += following.order
    return step, at


def tree(xml: str) -> Node:
    return _node(ET.fromstring(xml), "1")


def _node(element: ET.Element, id: str) -> Node:
    tail, element.tail = element.tail, None
    cont = ET.canonicalize(ET.tostring(element, encoding="unicode"))
    element.tail = tail
    attributes = [Node(f"@{name}", f"{id}.@{name}", value, value, []) for name, value in element.attrib.items()]
    children = [_node(child, f"{id}.{number}") for number, child in enumerate(element, 1)]
    return Node(element.tag, id, "".join(element.itertext()), cont, [*attributes, *children])


def evaluate(pattern: str, root: Node) -> list[list[str]]:
    top = read(pattern)
    document = Node("", "", "", "", [root])
    found = set()
    for images in _embeddings([top], document):
        row = [getattr(images[id(step)], what) for step in top.order for what in step.returns]
        found.add(tuple(row))
    return sorted(map(list, found))


def _embeddings(steps: list[Step], above: Node) -> Iterator[dict[int, Node]]:
    """Images of sibling steps and all below them."""
    if not steps:
        yield {}
        return
    first, *rest = steps
    for node in above.below if first.axis == "/" else list(_descendants(above)):
        if node.label == first.label and first.constant in (None, node.val):
            for inner in _embeddings(first.below, node):
                for others in _embeddings(rest, above):
                    yield {id(first): node, **inner, **others}


def _descendants(node: Node) -> Iterator[Node]:
    for child in node.below:
        yield child
        yield from _descendants(child)
