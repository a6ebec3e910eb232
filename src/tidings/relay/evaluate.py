"""What a pattern returns of a document, in time that depends on the matches: `reference.py` says what it means.

1. Candidates: per node of the pattern, the nodes of its label whose text is the constant.
2. Semi-joins up the pattern: keep a candidate if each child of the pattern has a candidate below it. Then down: keep one if its
   parent has a candidate above it. What is left is part of an embedding (`reduction.py`).
3. Rows: all combinations of matches that are below each other as the pattern has it (`rows.py`).
"""

from __future__ import annotations

from tidings.relay.document import Document
from tidings.relay.pattern import Axis, Pattern, PatternNode, Row
from tidings.relay.reduction import reduce_matches, structure_of
from tidings.relay.rows import ROWS_MAX, pattern_rows


def evaluate_pattern(pattern: Pattern, document: Document, rows_max: int = ROWS_MAX) -> list[Row]:
    """The distinct rows, sorted as lists of texts. RowsError if there are more than `rows_max`."""

    def returned(number: int, node: int) -> Row:
        return tuple(document.value(node, what) for what in pattern.nodes[number].returns)

    return pattern_rows(pattern, structure_of(document), node_matches(pattern, document), returned, rows_max)


def node_matches(pattern: Pattern, document: Document) -> list[list[int]]:
    """Per node of the pattern, its images in all embeddings, in document order; all are empty if there is no embedding."""
    matches = [_candidates(node, document) for node in pattern.nodes]
    if pattern.root.axis is Axis.CHILD:
        matches[0] = [node for node in matches[0] if node == 0]
    reduce_matches(structure_of(document), pattern, matches)
    return matches


def _candidates(step: PatternNode, document: Document) -> list[int]:
    nodes = document.nodes_of.get(step.label, ())
    if step.constant is None:
        return list(nodes)
    return [node for node in nodes if document.val(node) == step.constant]
