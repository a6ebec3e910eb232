"""Ids of the rows that exist, for workloads that pick one at random for every change."""

from __future__ import annotations


class Pool:
    """Ids to draw from: added, removed and drawn in constant time. A removed id's place goes to the last one."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self._place: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self.ids)

    def add(self, id: int) -> None:
        self._place[id] = len(self.ids)
        self.ids.append(id)

    def remove(self, id: int) -> None:
        place, last = self._place.pop(id), self.ids.pop()
        if last != id:
            self.ids[place] = last
            self._place[last] = place
