"""One tree pattern computed from others, by what they say of a document.

Every embedding of the target in a document gives one of each source, at all places where the source embeds in the target. So
the target's matches at a node are among those of every node of a source that is mapped there. To be done per document:

1. intersect those lists; apply the predicate where no list has it applied; keep only the root where the pattern starts there;
2. semi-joins up and down the pattern: what is left is part of an embedding (`reduction.py`);
3. take texts and contents of what is left from a source that has them.

Which list goes where is found once. If the only source is the target with branches in another order, lists pass as they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tidings.relay.dewey import KEY_ROOT, Key
from tidings.relay.embedding import carried, images, is_rewriting
from tidings.relay.message import Part, Parts
from tidings.relay.pattern import Axis, Pattern, PatternNode, Returned
from tidings.relay.reduction import KEYS, reduce_matches


def part_columns(step: PatternNode) -> tuple[Returned, ...]:
    """What the columns of a part hold. The text comes with contents, as it cannot be made of them; a constant is known."""
    match carried(step):
        case Returned.CONT:
            return (Returned.CONT,) if step.constant is not None else (Returned.CONT, Returned.VAL)
        case Returned.VAL:
            return (Returned.VAL,)
        case Returned.ID:
            return ()


@dataclass(frozen=True, slots=True)
class _Place:
    """Part of a source: which source, which of its parts."""

    source: int
    part: int


@dataclass(frozen=True, slots=True)
class _Column:
    place: _Place
    column: int


@dataclass(frozen=True, slots=True)
class _Step:
    """What to do for one node of the target. constant: None if there is nothing to check, or it has been."""

    places: tuple[_Place, ...]
    constant: str | None
    texts: _Column | None
    columns: tuple[_Column, ...]


class PatternDerivation:
    """Called with what the sources say, in their order. Sources must be a rewriting of the target (`derivation`)."""

    def __init__(self, target: Pattern, sources: Sequence[Pattern]) -> None:
        self._target = target
        self._is_anchored = target.root.axis is Axis.CHILD
        places: list[list[_Place]] = [[] for _ in target.nodes]
        for source, pattern in enumerate(sources):
            found = images(pattern, target)
            assert found is not None
            for part, mask in enumerate(found):
                for node in range(len(places)):
                    if mask >> node & 1:
                        places[node].append(_Place(source, part))
        self._steps = tuple(_prepared(step, tuple(at), sources) for step, at in zip(target.nodes, places, strict=True))
        self._is_copy = len(sources) == 1 and _is_same_tree(target, sources[0], places)

    def __call__(self, inputs: Sequence[Parts]) -> Parts:
        given: list[tuple[Part, ...]] = []
        for parts in inputs:
            if parts is None:
                return None
            given.append(parts)
        if self._is_copy:
            return tuple([self._copied(given[0], step) for step in self._steps])
        matches: list[list[Key]] = []
        for step in self._steps:
            ids = _candidates(step, given)
            if not ids:
                return None
            matches.append(ids)
        if self._is_anchored:
            matches[0] = [KEY_ROOT] if matches[0][0] == KEY_ROOT else []
        reduce_matches(KEYS, self._target, matches)
        if not matches[0]:
            return None
        return tuple([_part(given, ids, step) for ids, step in zip(matches, self._steps, strict=True)])

    def _copied(self, given: tuple[Part, ...], step: _Step) -> Part:
        part = given[step.places[0].part]
        if len(step.columns) == len(part.columns):
            return part
        return Part(part.ids, tuple([part.columns[column.column] for column in step.columns]))


def derivation(target: Pattern, sources: Sequence[Pattern]) -> PatternDerivation | None:
    """None if the sources are no rewriting of the target."""
    return PatternDerivation(target, sources) if is_rewriting(sources, target) else None


def _prepared(step: PatternNode, places: tuple[_Place, ...], sources: Sequence[Pattern]) -> _Step:
    constants = {sources[at.source].nodes[at.part].constant for at in places}
    is_open = step.constant is not None and step.constant not in constants
    columns = tuple(_where(returned, places, sources) for returned in part_columns(step))
    texts = _where(Returned.VAL, places, sources) if is_open else None
    return _Step(places, step.constant if is_open else None, texts, columns)


def _where(returned: Returned, places: tuple[_Place, ...], sources: Sequence[Pattern]) -> _Column:
    for at in places:
        columns = part_columns(sources[at.source].nodes[at.part])
        if returned in columns:
            return _Column(at, columns.index(returned))
    raise AssertionError("a rewriting has a source for each column")


def _is_same_tree(target: Pattern, source: Pattern, places: Sequence[Sequence[_Place]]) -> bool:
    """Whether the source differs from the target at most in the order of its nodes and in what it returns."""
    if len(source.nodes) != len(target.nodes) or any(len(at) != 1 for at in places):
        return False
    parts = [at.part for (at,) in places]
    for number, (part, step) in enumerate(zip(parts, target.nodes, strict=True)):
        above = -1 if number == 0 else parts[target.parents[number]]
        other = source.nodes[part]
        if source.parents[part] != above or (other.axis, other.constant) != (step.axis, step.constant):
            return False
    return True


def _candidates(step: _Step, given: list[tuple[Part, ...]]) -> list[Key]:
    first, *others = step.places
    ids = given[first.source][first.part].ids
    if others:
        lists = [ids, *(given[at.source][at.part].ids for at in others)]
        ids = min(lists, key=len)
        for other in lists:
            if other != ids:
                known = set(other)
                ids = [id for id in ids if id in known]
    if step.texts is not None:
        at = step.texts.place
        texts = dict(zip(given[at.source][at.part].ids, _column(given, step.texts), strict=True))
        ids = [id for id in ids if texts[id] == step.constant]
    return ids


def _column(given: list[tuple[Part, ...]], column: _Column) -> list[str]:
    return given[column.place.source][column.place.part].columns[column.column]


def _part(given: list[tuple[Part, ...]], ids: list[Key], step: _Step) -> Part:
    return Part(ids, tuple([_selected(ids, given, column) for column in step.columns]) if step.columns else ())


def _selected(ids: list[Key], given: list[tuple[Part, ...]], column: _Column) -> list[str]:
    """The column for some of its ids, in order."""
    of = given[column.place.source][column.place.part].ids
    values = _column(given, column)
    if len(of) == len(ids):
        return values
    found = dict(zip(of, values, strict=True))
    return [found[id] for id in ids]
