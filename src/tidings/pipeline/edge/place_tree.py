"""The places of a job: their names, and the place of each subscription.

A place is a gateway, with a name such as `berlin`. Where gateways are many, brokers stand between them and the job: the place
`eu/berlin` is a gateway behind the broker `eu`. The job sends to the nodes below it, which are gateways and brokers.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

from tidings.model.errors import RecordError, UsageError

_NAME = re.compile(r"[A-Za-z0-9_-]+(/[A-Za-z0-9_-]+)*")
_LISTED = 8


class PlaceTree:
    """The gateways below a node of the tree: the job itself, or a broker. nodes: names of those that the node sends to."""

    def __init__(self, names: Sequence[str], *, root: str = "") -> None:
        """names: of all gateways. root: the broker below which this is; empty: the job."""
        for name in names:
            check_name(name)
        if len(set(names)) < len(names):
            raise UsageError(f"a place is named twice: {', '.join(names)}")
        known = set(names)
        inner = next((name for name in names if any(each.startswith(f"{name}/") for each in known)), None)
        if inner is not None:
            raise UsageError(f"the place {inner!r} has places below it, so it is a broker: name its gateways alone")
        self._prefix = f"{root}/" if root else ""
        self.names = tuple(name for name in names if name.startswith(self._prefix))
        self._known = set(self.names)
        self.nodes = list(dict.fromkeys(map(self.node_of, self.names)))
        self._numbers = {node: number for number, node in enumerate(self.nodes)}

    def choose(self, id: str, wanted: str | None) -> str:
        """The gateway of a subscription. RecordError if there is none of the name that is wanted."""
        if wanted is None:
            return self.names[zlib.crc32(id.encode()) % len(self.names)]
        if wanted not in self._known:
            listed = ", ".join(self.names[:_LISTED]) + (", .." if len(self.names) > _LISTED else "")
            raise RecordError(f"there is no place {wanted!r}; there are {listed}")
        return wanted

    def node_of(self, name: str) -> str:
        """The node by which a gateway is reached."""
        return self._prefix + name.removeprefix(self._prefix).partition("/")[0]

    def number_of(self, name: str) -> int:
        """The number of that node."""
        return self._numbers[self.node_of(name)]

    def has(self, name: str) -> bool:
        """Whether a name is that of a gateway, or of a broker with gateways below it."""
        return any(is_at(place, name) for place in self.names)


def is_at(place: str, node: str) -> bool:
    """Whether a gateway is the node, or below it."""
    return place == node or place.startswith(f"{node}/")


def check_name(name: str) -> None:
    """UsageError if a text cannot be the name of a place."""
    if not _NAME.fullmatch(name) or len(name) > 200:
        raise UsageError(f"{name!r} is no name of a place: letters, digits, _ and -, with / between broker and gateway")
