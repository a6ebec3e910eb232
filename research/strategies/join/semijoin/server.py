"""The server of semijoins: holds the shared semijoins and their forms, and chooses the neighbours that filter each table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa

from research.servers.message import MessageBatch, SnapshotBatch
from research.servers.protocols import Interleaving, Replanning
from research.servers.space import places
from research.strategies.join.join_server import JoinServer, Member
from research.strategies.join.payload import fits, project
from research.strategies.join.relations.schedule import scheduled
from research.strategies.join.relations.store import RelationChange
from research.strategies.join.semijoin.decomposition import (
    Estimate,
    Filters,
    Sample,
    Traffic,
    cheapest,
    combinations_of,
)
from research.strategies.join.semijoin.shared import SharedSemijoin, semijoin_form
from research.strategies.join.semijoin.skylines import Skyline
from research.strategies.join.space import Space, Wanted, space_of
from research.strategies.join.subscriber_index import SubscriberIndex
from tidings.families.spec import Form
from tidings.kernels.rows import NONE
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.codes import Int64Array
from tidings.model.points import PointBatch
from tidings.sql.shape import Shape

_RECONSIDER_AFTER, _RECONSIDER_AT_LAST = 4_096, 1_048_576
"""Changes between two estimates of the best filters: at first, and at most."""
_SAMPLE = 64
_MUCH_CHEAPER = 0.8
"""A filter is replaced only if the new cost is below this fraction of the old: replacing it sends a whole table again."""


class SemijoinServer(JoinServer, Interleaving, Replanning):
    """Serves joins by shared semijoins: every side of every form is the base of one."""

    def __init__(self, catalog: Catalog, skyline: Skyline, *, is_free: bool = False) -> None:
        """is_free: a table may be filtered by several neighbours or by none, if that costs less; else by exactly one."""
        super().__init__(catalog)
        self._skyline = skyline
        self._is_free = is_free
        self.semijoins: dict[str, SharedSemijoin] = {}
        self._indexes: dict[Shape, SubscriberIndex] = {}
        self._uses: dict[str, dict[Shape, int]] = {}
        """Form -> shape of an index -> number of the form's semijoins that use it."""
        self._changes: dict[Wanted, float] = {}
        """Relation -> number of changes; halved at every estimate, so that older changes count less."""
        self._reconsider_after = _RECONSIDER_AFTER

    @property
    def indexes(self) -> list[SubscriberIndex]:
        """The indexes of subscribers, which semijoins share."""
        return list(self._indexes.values())

    def change_many(self, changes: Sequence[TableChanges]) -> Iterable[MessageBatch]:
        for batch in scheduled(self._store.edges(), changes) if len(changes) > 1 else changes:
            yield from self.change(batch)

    def _messages(self, change: RelationChange) -> Iterator[MessageBatch]:
        wanted = change.relation.side.rows
        self._changes[wanted] = self._changes.get(wanted, 0.0) + len(change.changes)
        for semijoin in list(self.semijoins.values()):
            if any(map(self.subscribers.count, semijoin.to)):
                yield from semijoin.change(change, self._sure_since)

    # Which neighbours filter which table

    def decide(self) -> Any:
        """Returns form -> side -> new filters, where these are much cheaper than the present ones; None if there are none."""
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
        # Estimating takes time: if nothing is changed, the next estimate waits for twice as many changes.
        self._reconsider_after = _RECONSIDER_AFTER if decided else min(2 * self._reconsider_after, _RECONSIDER_AT_LAST)
        return decided or None

    def choose(self, form: str, estimate: Estimate) -> list[Filters]:
        """[sides]: filters of the form, the cheapest if these are much cheaper than the present ones, else the present ones."""
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
                if self.subscribers.count(form):
                    # Rows may not have been sent to a subscription that had no partner in the old filter.
                    yield from replace(self._semijoin(member, int(number)), to=[form]).all_rows(seq)

    def estimate(self, form: str) -> Estimate:
        """Estimate of costs for a form, from a sample of subscriptions; from counts if there are no subscriptions or rows."""
        graph = self.members[form].graph
        sizes = [len(relation) for relation in graph.relations]
        per_value = {
            (number, edge.other(number)): sizes[number] / max(1, edge.values)
            for sides, edge in graph.edges.items()
            for number in sides
        }
        changes = tuple(self._changes.get(relation.side.rows, 0.0) for relation in graph.relations)
        traffic = Traffic(changes, per_value)
        some = self.subscribers.some(form, graph.space.dims, _SAMPLE)
        return Sample(graph, traffic, some) if len(some) and all(sizes) else traffic

    def _choices(self, member: Member, number: int) -> list[Filters]:
        around = member.graph.neighbours(number)
        return combinations_of(around) if self._is_free else [(one,) for one in around]

    def refilter(self, member: Member, filters: list[Filters]) -> None:
        changed = [number for number, by in enumerate(filters) if by != member.filters[number]]
        for number in changed:
            self._leave_semijoin(member, number)
        super().refilter(member, filters)
        for number in changed:
            self._enter_semijoin(member, number)

    # Which forms share a semijoin

    def _welcome(self, member: Member) -> None:
        for number in range(len(member.space.sides)):
            self._enter_semijoin(member, number)

    def _enter_semijoin(self, member: Member, number: int) -> None:
        semijoin, uses = self._semijoin(member, number), self._uses.setdefault(member.space.key, {})
        semijoin.to.append(member.space.key)
        shape = _index_shape(semijoin.space)
        if shape not in uses:
            slots = self.subscribers.slots(member.space.key)
            semijoin.index.add(slots, self._projected(member, slots, semijoin.index))
        uses[shape] = uses.get(shape, 0) + 1

    def _leave_semijoin(self, member: Member, number: int) -> None:
        semijoin, uses = self._semijoin(member, number), self._uses[member.space.key]
        semijoin.to.remove(member.space.key)
        shape = _index_shape(semijoin.space)
        uses[shape] -= 1
        if not uses[shape]:
            del uses[shape]
            semijoin.index.remove(self.subscribers.slots(member.space.key))

    def _semijoin(self, member: Member, number: int) -> SharedSemijoin:
        """The semijoin whose base is a side of the form, made if there is none."""
        form = semijoin_form(member.space, number, member.filters[number])
        if form.key not in self.semijoins:
            space = space_of(form, self._catalog)
            index = self._indexes.setdefault(_index_shape(space), SubscriberIndex(space))
            graph, base = member.graph.within(space), space.side_of(form.variant)
            self.semijoins[form.key] = SharedSemijoin(graph, base, index, self._skyline)
        return self.semijoins[form.key]

    def _projected(self, member: Member, slots: Int64Array, index: SubscriberIndex) -> Int64Array:
        """Coordinates of the subscriptions along the axes of an index, [slots, axes]."""
        coords = self.subscribers.coords(slots, member.space.dims)
        return np.ascontiguousarray(coords[:, places(member.space.axes, index.space.axes)])

    def _listen(self, member: Member, slots: Int64Array) -> None:
        for shape in self._uses[member.space.key]:
            index = self._indexes[shape]
            index.add(slots, self._projected(member, slots, index))

    def _leave(self, member: Member, slots: Int64Array) -> None:
        for shape in self._uses[member.space.key]:
            self._indexes[shape].remove(slots)

    def _first_rows(self, member: Member, points: PointBatch) -> Iterator[SnapshotBatch]:
        """For every side, the rows that each point selects and has a partner for in every filter.

        Rows without partners in sides that are no filter are included: no message would send them when they get one.
        """
        graph = member.graph
        entries = [relation.current() for relation in graph.relations]
        codes = [relation.codes[some] for relation, some in zip(graph.relations, entries, strict=True)]
        filtered = [[graph.edge(number, by) for by in filters] for number, filters in enumerate(member.filters)]
        values = {
            edge.sides: {side: edge.index(side).value_of(entries[side]) for side in edge.sides}
            for edges in filtered
            for edge in edges
        }
        found: list[list[Int64Array]] = [[] for _ in graph.relations]
        for coords in points.coords:
            chosen = [fits(side, own, coords) for side, own in zip(graph.space.sides, codes, strict=True)]
            for number, edges in enumerate(filtered):
                kept = np.flatnonzero(chosen[number])
                for edge in edges:
                    # One more entry for rows without a join value: their number NONE (-1) is the last place.
                    has_partner = np.zeros(edge.values + 1, np.bool_)
                    other = edge.other(number)
                    has_partner[values[edge.sides][other][chosen[other]]] = True
                    has_partner[NONE] = False
                    kept = kept[has_partner[values[edge.sides][number][kept]]]
                found[number].append(kept)
        for number, parts in enumerate(found):
            owner = np.repeat(np.arange(len(points)), [len(part) for part in parts])
            if len(owner):
                rows = graph.relations[number].rows(entries[number][np.concatenate(parts)])
                payload = project(graph.space, number, rows)
                yield SnapshotBatch(graph.space.key, points.after[owner], points.id.take(pa.array(owner)), payload)

    def dump(self) -> Any:
        changes = [self._changes.get(wanted, 0.0) for wanted in self._store.relations]
        return {**super().dump(), "changes": changes}

    def load(self, state: Any) -> None:
        super().load(state)
        self._changes = dict(zip(self._store.relations, state["changes"], strict=True))


def _index_shape(space: Space) -> Shape:
    """Key of a subscriber index: semijoins of the same tables, predicates and edges share one, whatever columns they send."""
    return replace(Form.from_key(space.key).shape, projection=None)
