"""What a pattern returns of a document, by definition: the oracle of the tests.

An embedding maps each node of the pattern to a node of the document such that
- labels are equal, and the text content of a node with a predicate is the constant;
- the image of a `/` step is a child of its parent's image, that of a `//` step a proper descendant; attributes are
  children of their element;
- the first step's image is the root if it is a `/` step, any node if it is a `//` step.

Each embedding gives one row: the returned values, in the order of the pattern's text. Rows are distinct, and sorted as lists of
texts: by code points, ids too ("1.10" is before "1.2").
"""

from __future__ import annotations

from collections.abc import Iterator

from tidings.relay.document import Document
from tidings.relay.pattern import Axis, Pattern, Row


def reference_rows(pattern: Pattern, document: Document) -> list[Row]:
    return sorted({_row(pattern, document, images) for images in embeddings(pattern, document)})


def embeddings(pattern: Pattern, document: Document) -> Iterator[tuple[int, ...]]:
    """The image of each node of the pattern, all embeddings one after the other. Takes exponential time."""
    return _extend(pattern, document, ())


def _extend(pattern: Pattern, document: Document, images: tuple[int, ...]) -> Iterator[tuple[int, ...]]:
    number = len(images)
    if number == len(pattern.nodes):
        yield images
        return
    step = pattern.nodes[number]
    # Nodes are in preorder, so the parent has its image already. The document itself stands above its root, as node -1.
    above = images[pattern.parents[number]] if number else -1
    for node in range(len(document)):
        ancestors = _ancestors(document, node)
        is_below = ancestors[0] == above if step.axis is Axis.CHILD else above in ancestors
        has_value = step.constant is None or document.val(node) == step.constant
        if document.labels[node] == step.label and has_value and is_below:
            yield from _extend(pattern, document, (*images, node))


def _ancestors(document: Document, node: int) -> list[int]:
    """From the parent up to the document, -1."""
    found = []
    while node != -1:
        node = document.parents[node]
        found.append(node)
    return found


def _row(pattern: Pattern, document: Document, images: tuple[int, ...]) -> Row:
    return tuple(document.value(images[number], returned) for number, returned in pattern.columns)
