"""What all join servers have in common that know rows: tables that meet, and subscriptions of one or more forms."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tidings.families.join.decomposition import Filters
from tidings.families.join.departures import NEVER
from tidings.families.join.meeting import Arrival, Meeting, Setting
from tidings.families.join.roster import Roster
from tidings.families.join.subscription import Space, space_of
from tidings.families.optional import Remembering
from tidings.families.protocols import Created, Memory, Rows, Server
from tidings.families.spec import Form
from tidings.model.catalog import Catalog
from tidings.model.change import TableChanges
from tidings.model.codes import Int64Array
from tidings.model.message import MessageBatch, SnapshotBatch
from tidings.model.points import PointBatch


@dataclass(eq=False)
class Member:
    """A form that a server has subscriptions of."""

    setting: Setting
    filters: list[Filters]
    """The neighbours by which each side is filtered."""

    @property
    def space(self) -> Space:
        return self.setting.space


class JoinServer(Server, Remembering):
    """Rows of all tables of the forms there are, and the points of everyone who listens."""

    memory = Memory.CHANGES

    def __init__(self, catalog: Catalog) -> None:
        self._catalog = catalog
        self._meeting = Meeting()
        self.members: dict[str, Member] = {}
        self.roster = Roster()
        self._sure_since = NEVER
        """By the meeting's clock: of rows that came later, it is known to whom they have been sent."""

    def change(self, changes: TableChanges) -> Iterable[MessageBatch]:
        for arrival in self._meeting.change(changes):
            if len(self.roster):
                yield from self._messages(arrival)

    def see(self, changes: TableChanges) -> None:
        """Takes changes without telling anybody."""
        self._meeting.change(changes)

    def create(self, points: PointBatch, tables: Mapping[str, Rows], *, wants_snapshots: bool) -> Created:
        member = self.admit(points.form, tables)
        self._listen(member, self.roster.add(points.form, points.id.to_pylist(), points.coords))
        return Created(points, list(self._first_rows(member, points)) if wants_snapshots else [])

    def drop(self, points: PointBatch) -> None:
        self._leave(self.members[points.form], self.roster.remove(points))

    def admit(self, form: str, tables: Mapping[str, Rows]) -> Member:
        """Gets ready for subscriptions of a form; `tables` have the rows that came before."""
        if form not in self.members:
            setting = self._meeting.setting(space_of(Form.from_key(form), self._catalog), tables)
            self.members[form] = Member(setting, setting.first_filters())
            self._welcome(self.members[form])
        return self.members[form]

    @abstractmethod
    def _messages(self, arrival: Arrival) -> Iterator[MessageBatch]: ...

    @abstractmethod
    def _welcome(self, member: Member) -> None:
        """A form that is new."""

    @abstractmethod
    def _listen(self, member: Member, slots: Int64Array) -> None:
        """Subscriptions that are new."""

    @abstractmethod
    def _leave(self, member: Member, slots: Int64Array) -> None:
        """Subscriptions that go."""

    @abstractmethod
    def _first_rows(self, member: Member, points: PointBatch) -> Iterator[SnapshotBatch]: ...

    def dump(self) -> Any:
        rows = [relation.rows(relation.current()) for relation in self._meeting.relations.values()]
        members = [
            {"form": form, "filters": member.filters, "points": self.roster.dump(form, member.space.dims)}
            for form, member in self.members.items()
        ]
        return {"members": members, "rows": rows}

    def load(self, state: Any) -> None:
        for known in state["members"]:
            member = self.admit(known["form"], {})
            self.refilter(member, [tuple(some) for some in known["filters"]])
        # In the order in which the forms have asked for them, as when they were dumped.
        for wanted, rows in zip(list(self._meeting.relations), state["rows"], strict=True):
            self._meeting.fill(wanted, rows)
        for known in state["members"]:
            points = known["points"]
            slots = self.roster.add(known["form"], points["id"].to_pylist(), points["coords"])
            self._listen(self.members[known["form"]], slots)
        self.recover()

    def recover(self) -> None:
        """Whatever was sent so far may have gone to anybody."""
        self._meeting.clock += 1
        self._sure_since = self._meeting.clock

    def refilter(self, member: Member, filters: list[Filters]) -> None:
        """Filters the sides of a form otherwise from now on."""
        member.filters = filters
        self.recover()
