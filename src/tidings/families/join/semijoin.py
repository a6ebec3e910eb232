"""Semijoins: a row goes to those who select it and have a partner for it; a row that gets its first partner goes out late.

Every table of a join is filtered by neighbours, most often one. A client then holds all rows that are in its answer, some
that are not, and only rows as they are now: what it joins of these is exact. Rows that change or go are therefore dropped by
everyone who selected them, and rows whose last partner goes may stay where they are.

Subscriptions of all forms that filter a table alike are a circle: a row is looked at, and sent, once for all of them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import pyarrow as pa

from tidings.families.join.audience import Audience
from tidings.families.join.boxes import Boxes, both
from tidings.families.join.circle import base_of, circle_form
from tidings.families.join.decomposition import Estimate, Filters, Sample, Traffic, cheapest, combinations_of
from tidings.families.join.exposure import Exposure
from tidings.families.join.first import first_rows
from tidings.families.join.holders import partners_had
from tidings.families.join.interleave import interleaved
from tidings.families.join.meeting import Arrival, Setting
from tidings.families.join.relation import NONE, Relation
from tidings.families.join.rows import GONE, PLACED, told_rows
from tidings.families.join.server import JoinServer, Member
from tidings.families.join.skylines import Question, Skyline
from tidings.families.join.subscription import Space, Wanted, space_of
from tidings.families.optional import Interleaving, Replanning
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch
from tidings.model.region import Regions
from tidings.model.space import places
from tidings.sql.shape import Shape

_PAIRS_AT_ONCE = 262_144
_RECONSIDER_AFTER, _RECONSIDER_AT_LAST = 4_096, 1_048_576
"""Changes."""
_SAMPLE = 64
_MUCH_CHEAPER = 0.8
"""Sending a whole table again should pay."""


@dataclass(eq=False)
class Circle:
    """Rows of a base table, filtered by all other sides of a space, for the subscriptions of some forms."""

    setting: Setting
    base: int
    audience: Audience
    """May have others, who get these rows in another circle: a little too much is then sent."""
    to: list[str] = field(default_factory=list)
    """The forms in it."""

    @property
    def space(self) -> Space:
        return self.setting.space

    @property
    def relation(self) -> Relation:
        return self.setting.relations[self.base]

    @property
    def filters(self) -> Filters:
        return tuple(number for number in range(len(self.space.sides)) if number != self.base)


class SemijoinServer(JoinServer, Interleaving, Replanning):
    """Circles, whose rows are found where tables meet."""

    def __init__(self, catalog: Catalog, skyline: Skyline, *, is_free: bool = False) -> None:
        """`is_free`: tables may be filtered by several neighbours or by none, where that pays."""
        super().__init__(catalog)
        self._skyline = skyline
        self._is_free = is_free
        self.circles: dict[str, Circle] = {}
        self._audiences: dict[Shape, Audience] = {}
        self._hearing: dict[str, dict[Shape, int]] = {}
        """For each form, in how many circles it is with each audience."""
        self._changes: dict[Wanted, float] = {}
        """Of each relation, those long ago counted less."""
        self._reconsider_after = _RECONSIDER_AFTER

    def stretch(self, changes: Sequence[TableChanges]) -> Iterable[MessageBatch]:
        for batch in interleaved(self._meeting.joints(), changes) if len(changes) > 1 else changes:
            yield from self.change(batch)

    def _messages(self, arrival: Arrival) -> Iterator[MessageBatch]:
        wanted = arrival.relation.side.rows
        self._changes[wanted] = self._changes.get(wanted, 0.0) + len(arrival.changes)
        for circle in list(self.circles.values()):
            if not any(map(self.roster.count, circle.to)):
                continue
            if circle.relation is arrival.relation:
                yield from self._base(circle, arrival)
            for by in circle.filters:
                if circle.setting.relations[by] is arrival.relation:
                    yield from self._exposed(circle, by, arrival)

    def decide(self) -> Any:
        """Which sides are to be filtered otherwise, by form, because it has become much cheaper."""
        members = self.members.values()
        has_choice = any(len(self._choices(m, number)) > 1 for m in members for number in range(len(m.space.sides)))
        if sum(self._changes.values()) < self._reconsider_after or not has_choice:
            return None
        decided: dict[str, dict[str, list[int]]] = {}
        for form, member in self.members.items():
            best = self.choose(form, self.estimate(form))
            for number, (now, by) in enumerate(zip(member.filters, best, strict=True)):
                if by != now:
                    decided.setdefault(form, {})[str(number)] = list(by)
        self._changes = {wanted: count / 2 for wanted, count in self._changes.items()}
        # Looking costs something as well: where all is as it should be, the next time can wait.
        self._reconsider_after = _RECONSIDER_AFTER if decided else min(2 * self._reconsider_after, _RECONSIDER_AT_LAST)
        return decided or None

    def choose(self, form: str, estimate: Estimate) -> list[Filters]:
        """What to filter the sides of a form by: the cheapest, where that is much cheaper than what they are filtered by."""
        member = self.members[form]
        found = []
        for number, now in enumerate(member.filters):
            best = cheapest(estimate, number, self._choices(member, number))
            is_much = estimate.cost(number, best) < _MUCH_CHEAPER * estimate.cost(number, now)
            found.append(best if is_much else now)
        return found

    def follow(self, decision: Any, seq: int) -> Iterator[MessageBatch]:
        for form, sides in decision.items():
            member = self.members[form]
            for number, by in sides.items():
                filters = list(member.filters)
                filters[int(number)] = tuple(by)
                self.refilter(member, filters)
                yield from self._again(member, int(number), seq)

    def estimate(self, form: str) -> Estimate:
        """What filters cost a form, as far as can be told now."""
        setting = self.members[form].setting
        sizes = [len(relation) for relation in setting.relations]
        per_value = {
            (number, j.other(number)): sizes[number] / max(1, j.values)
            for sides, j in setting.junctions.items()
            for number in sides
        }
        changes = tuple(self._changes.get(relation.side.rows, 0.0) for relation in setting.relations)
        traffic = Traffic(changes, per_value)
        some = self.roster.some(form, setting.space.dims, _SAMPLE)
        if not len(some) or not all(sizes):
            return traffic
        return Sample(setting.space, traffic, setting.relations, setting.junctions, some)

    def _choices(self, member: Member, number: int) -> list[Filters]:
        around = member.setting.neighbours(number)
        return combinations_of(around) if self._is_free else [(one,) for one in around]

    def _again(self, member: Member, number: int, seq: int) -> Iterator[MessageBatch]:
        """All rows of a side that has a new filter, to those who have a partner by it: some may have had none by the old."""
        form = member.space.key
        circle = replace(self._circle(member, number), to=[form])
        entries = circle.relation.current()
        owner, boxes = self._reached(circle, entries, circle.filters)
        if len(owner) and self.roster.count(form):
            yield self._placed(circle, entries, np.full(len(entries), seq), owner, boxes)

    def _placed(
        self, circle: Circle, entries: Int64Array, seq: Int64Array, owner: Int64Array, boxes: Boxes
    ) -> MessageBatch:
        """A message for each row, given by entries, that has any of the boxes; seq: by row."""
        told, regions = _regions(owner, boxes, PLACED)
        return self._message(circle, seq[told], regions, circle.relation.rows(entries[told]))

    def _message(self, circle: Circle, seq: Int64Array, regions: Regions, rows: pa.RecordBatch) -> MessageBatch:
        return MessageBatch(circle.space.key, seq, (), regions, rows, None, tuple(circle.to), circle.space.axes)

    def _base(self, circle: Circle, arrival: Arrival) -> Iterator[MessageBatch]:
        """The changed rows themselves: to those who select and have a partner for the new, and to all who may have the old."""
        changes, moves = arrival.changes, arrival.moves
        at = np.flatnonzero(moves.new != NONE)
        owner, boxes = self._reached(circle, moves.new[at], circle.filters)
        gone = np.flatnonzero(moves.old != NONE)
        place, old_boxes = self._holding(circle, moves.old[gone], moves.old_codes[gone])
        gone = gone[place]
        come = at[owner]
        is_placed = np.zeros(len(changes), np.bool_)
        is_placed[come] = True
        parts = [_merged(come, boxes, gone, old_boxes)] if is_placed[gone].any() else []
        if not parts:
            # No change has boxes of both kinds: nothing need be put between the others.
            parts = [_regions(come, boxes, PLACED), _regions(gone, old_boxes, GONE)]
        for told, regions in parts:
            if len(told):
                rows = told_rows(circle.relation.side, changes, told, is_placed)
                yield self._message(circle, changes.seq[told], regions, rows)

    def _reached(self, circle: Circle, entries: Int64Array, filters: Filters) -> tuple[Int64Array, Boxes]:
        """(row, box) for all who select rows, given by entries, and have a partner for them in each filter."""
        codes = circle.relation.codes[entries]
        found = None
        for by in filters:
            junction = circle.setting.junction(circle.base, by)
            question = Question(circle.space, circle.audience, circle.base, codes, by, junction.end(by))
            part = self._skyline.draw(question, junction.end(circle.base).value_of(entries))
            found = part if found is None else both(found, part)
        if found is None:
            return np.arange(len(codes)), Boxes.all(circle.space, len(codes)).hold(circle.base, codes)
        return found

    def _holding(self, circle: Circle, entries: Int64Array, codes: Int64Array) -> tuple[Int64Array, Boxes]:
        """(row, box) for all who may hold rows that go: those who selected them and, if that is known, had a partner."""
        found = np.arange(len(entries)), Boxes.all(circle.space, len(entries)).hold(circle.base, codes)
        arrived = circle.relation.arrived[entries]
        # A row whose boxes would be too many for all filters is sent by the first alone, so it is dropped by that one too.
        for by in circle.filters[:1]:
            junction = circle.setting.junction(circle.base, by)
            values, end = junction.end(circle.base).value_of(entries), junction.end(by)
            is_sure = arrived > np.maximum(end.departures.known_since(values), self._sure_since)
            if is_sure.any():
                had = partners_had(end, circle.setting.relations[by].codes, values, is_sure, arrived)
                boxes = Boxes.all(circle.space, len(had.row))
                at = np.flatnonzero(had.is_known)
                narrowed = boxes.take(at)
                # Skylines look at no other columns: they reach some whom a partner's further columns do not satisfy.
                for column in (*end.side.pinned, *end.side.ranged[:1]):
                    narrowed.hold_column(by, column, had.codes[at, column])
                boxes.lo[at], boxes.hi[at] = narrowed.lo, narrowed.hi
                found = both(found, (had.row, boxes))
        return found

    def _exposed(self, circle: Circle, by: int, arrival: Arrival) -> Iterator[MessageBatch]:
        """Rows that have found their first partner, for some, in a row of a side that filters them."""
        junction = circle.setting.junction(circle.base, by)
        step, moves = arrival.steps[junction.end(by)], arrival.moves
        exposure = Exposure(circle.space, circle.audience, circle.base, by, junction, arrival.relation.codes)
        at, gaps = exposure.gaps(step.at, moves, step.gap, step.cell[step.at])
        starts, entries = junction.end(circle.base).entries_at(step.value[at])
        for first, last in _portions(starts):
            cuts, of = starts[first : last + 1] - starts[first], np.arange(first, last)
            found = entries[starts[first] : starts[last]]
            row, boxes = exposure.wanted(gaps, of, cuts, circle.relation.codes[found])
            of = np.repeat(of, np.diff(cuts))
            others = tuple(one for one in circle.filters if one != by)
            if others and len(row):
                # Only for those who have partners in all other filters as well.
                has_others = self._reached(circle, found[row], others)
                narrowed, boxes = _wanted(circle, *both((np.arange(len(row)), boxes), has_others))
                row = row[narrowed]
            if len(row):
                yield self._placed(circle, found, arrival.changes.seq[at[of]], row, boxes)

    def _welcome(self, member: Member) -> None:
        for number in range(len(member.space.sides)):
            self._enter(member, number)

    def refilter(self, member: Member, filters: list[Filters]) -> None:
        changed = [number for number, by in enumerate(filters) if by != member.filters[number]]
        for number in changed:
            self._quit(member, number)
        super().refilter(member, filters)
        for number in changed:
            self._enter(member, number)

    def _enter(self, member: Member, number: int) -> None:
        """Makes a form part of the circle of one of its sides."""
        circle = self._circle(member, number)
        circle.to.append(member.space.key)
        hearing = self._hearing.setdefault(member.space.key, {})
        among = _among(circle.space)
        if among not in hearing:
            slots = self.roster.slots(member.space.key)
            circle.audience.add(slots, self._projected(member, slots, circle.audience))
        hearing[among] = hearing.get(among, 0) + 1

    def _quit(self, member: Member, number: int) -> None:
        circle = self._circle(member, number)
        circle.to.remove(member.space.key)
        hearing, among = self._hearing[member.space.key], _among(circle.space)
        hearing[among] -= 1
        if not hearing[among]:
            del hearing[among]
            circle.audience.remove(self.roster.slots(member.space.key))

    def _circle(self, member: Member, number: int) -> Circle:
        form = circle_form(member.space, number, member.filters[number])
        if form.key not in self.circles:
            space = space_of(form, self._catalog)
            among = _among(space)
            if among not in self._audiences:
                self._audiences[among] = Audience(space)
            audience = self._audiences[among]
            self.circles[form.key] = Circle(member.setting.within(space), base_of(form), audience)
        return self.circles[form.key]

    def _projected(self, member: Member, slots: Int64Array, audience: Audience) -> Int64Array:
        coords = self.roster.coords(slots, member.space.dims)
        return np.ascontiguousarray(coords[:, places(member.space.axes, audience.space.axes)])

    def _listen(self, member: Member, slots: Int64Array) -> None:
        for among in self._hearing[member.space.key]:
            audience = self._audiences[among]
            audience.add(slots, self._projected(member, slots, audience))

    def _leave(self, member: Member, slots: Int64Array) -> None:
        for among in self._hearing[member.space.key]:
            self._audiences[among].remove(slots)

    def _first_rows(self, member: Member, points: PointBatch) -> Iterator[SnapshotBatch]:
        setting = member.setting
        filtered = [[setting.junction(number, by) for by in filters] for number, filters in enumerate(member.filters)]
        return first_rows(setting.space, points, setting.relations, filtered)

    def dump(self) -> Any:
        changes = [self._changes.get(wanted, 0.0) for wanted in self._meeting.relations]
        return {**super().dump(), "changes": changes}

    def load(self, state: Any) -> None:
        super().load(state)
        self._changes = dict(zip(self._meeting.relations, state["changes"], strict=True))


def _among(space: Space) -> Shape:
    """What circles must have in common to share an audience: their tables and predicates, and how they are joined."""
    return replace(Form.from_key(space.key).shape, projection=None)


def _wanted(circle: Circle, row: Int64Array, boxes: Boxes) -> tuple[Int64Array, Boxes]:
    """Those boxes with somebody in them."""
    kept = np.flatnonzero(circle.audience.any(boxes.lo, boxes.hi))
    return row[kept], boxes.take(kept)


def _regions(owner: Int64Array, boxes: Boxes, tag: int) -> tuple[Int64Array, Regions]:
    """(changes, the region of each) of boxes in the order of their changes."""
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    tags = np.full(len(owner), tag, np.uint8)
    return owner[starts], Regions(boxes.lo, boxes.hi, tags, np.append(starts, len(owner)))


def _merged(come: Int64Array, boxes: Boxes, gone: Int64Array, old_boxes: Boxes) -> tuple[Int64Array, Regions]:
    """(changes, the region of each) of boxes where rows come and where they go, both in the order of their changes."""
    count = len(come) + len(gone)
    places = (
        np.arange(len(come)) + np.searchsorted(gone, come),
        np.arange(len(gone)) + np.searchsorted(come, gone, "right"),
    )
    owner, tags = np.empty(count, np.int64), np.empty(count, np.uint8)
    lo, hi = np.empty((2, count, boxes.space.dims), np.int64)
    parts = ((come, boxes, PLACED), (gone, old_boxes, GONE))
    for place, (changes, some, tag) in zip(places, parts, strict=True):
        owner[place], lo[place], hi[place], tags[place] = changes, some.lo, some.hi, tag
    starts = np.flatnonzero(np.diff(owner, prepend=-1))
    return owner[starts], Regions(lo, hi, tags, np.append(starts, count))


def _portions(starts: Int64Array) -> Iterator[tuple[int, int]]:
    """Cuts of a list of lists, so that no portion is much too large."""
    first = 0
    while first < len(starts) - 1:
        last = int(np.searchsorted(starts, starts[first] + _PAIRS_AT_ONCE, "right")) - 1
        last = max(first + 1, last)
        yield first, last
        first = last
