"""CN*: which payload has crossed which link, and the payloads themselves; both soft, both bounded.

A message whose payload has crossed a link before is sent without it. Five rules make that safe:

- neighbour_ack: a link has had a payload only when its other end says so, which a broker that does not cache never does.
- link_session: what a link has had is forgotten when its other end restarts.
- ask_source: who needs a payload and lacks it asks the message's source, then the server.
- server_keeps: the server keeps a payload for as long as any message with it is under way, whatever becomes of the row.
- stripped_flag: that a payload was left out is said, and not concluded from there being none.

Each can be switched off, to show that it is needed.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

DIRECTORY_BYTES = 512 * 1024
_ENTRY_BYTES = 16
"""An entry of the directory: the payload's id, and a bit a link."""


@dataclass(frozen=True)
class Rules:
    neighbour_ack: bool = True
    link_session: bool = True
    ask_source: bool = True
    server_keeps: bool = True
    stripped_flag: bool = True


class PayloadCache:
    """A directory, payload id -> links that have had it, and a repository of payloads; both forget the least recently used.

    The repository holds at most so many bytes. With very few, no payload is ever kept, and the directory still saves:
    payloads are then asked for where they are needed.
    """

    def __init__(self, repository_bytes: int) -> None:
        self._capacity = repository_bytes
        self._directory: OrderedDict[int, set[int]] = OrderedDict()
        self._repository: OrderedDict[int, int] = OrderedDict()
        self._held = 0

    def links(self, payload_id: int) -> set[int]:
        """The links that have had a payload; to be changed by `mark` and `forget_link`."""
        links = self._directory.get(payload_id)
        if links is None:
            links = self._directory[payload_id] = set()
            if len(self._directory) * _ENTRY_BYTES > DIRECTORY_BYTES:
                self._directory.popitem(last=False)
        else:
            self._directory.move_to_end(payload_id)
        return links

    def mark(self, payload_id: int, link: int) -> None:
        self.links(payload_id).add(link)

    def forget_link(self, link: int) -> None:
        for links in self._directory.values():
            links.discard(link)

    def keep(self, payload_id: int, size: int) -> None:
        """Puts a payload into the repository, if it fits."""
        self.drop(payload_id)
        if size > self._capacity:
            return
        self._repository[payload_id] = size
        self._held += size
        while self._held > self._capacity:
            self._held -= self._repository.popitem(last=False)[1]

    def has(self, payload_id: int) -> bool:
        if payload_id not in self._repository:
            return False
        self._repository.move_to_end(payload_id)
        return True

    def size(self, payload_id: int) -> int:
        """The size of a payload in the repository; -1: it is not there."""
        return self._repository[payload_id] if self.has(payload_id) else -1

    def drop(self, payload_id: int) -> None:
        self._held -= self._repository.pop(payload_id, 0)

    def evict(self) -> None:
        """Forgets all payloads, but not which links have had them."""
        self._repository.clear()
        self._held = 0
