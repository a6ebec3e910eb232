"""A cache of limited size that drops what is used least, and whose hits write nothing."""

from __future__ import annotations

from typing import Generic, TypeVar

_CHARACTER_BYTES, _ENTRY_BYTES = 100, 1_000
"""Approximate bytes of an entry for each character of its key, and beyond."""

K = TypeVar("K", str, tuple[str, ...], str | tuple[str, ...])
V = TypeVar("V")


class Generations(Generic[K, V]):
    """Values by texts (or tuples of texts) in two generations of dictionaries.

    What is found in the old one moves to the young one; when the young one is full it becomes the old. So the least used are
    dropped, and threads may share a cache: at worst two of them make the same value. `entries_max` is for both generations
    together. `characters_max` is for the keys of one: the memory of what is kept grows with these.
    """

    __slots__ = ("_characters_max", "_generation_max", "_old_characters", "_young_characters", "old", "young")

    def __init__(self, entries_max: int, characters_max: int) -> None:
        self._generation_max = entries_max // 2
        self._characters_max = characters_max
        self.young: dict[K, V] = {}
        self.old: dict[K, V] = {}
        self._young_characters = self._old_characters = 0

    @property
    def nbytes(self) -> int:
        """Approximate bytes of all that is kept."""
        entries = len(self.young) + len(self.old)
        return _ENTRY_BYTES * entries + _CHARACTER_BYTES * (self._young_characters + self._old_characters)

    def get(self, key: K) -> V | None:
        found = self.young.get(key)
        return found if found is not None else self.from_old(key)

    def from_old(self, key: K) -> V | None:
        """The value of a key that is not in the young generation, to which it moves."""
        found = self.old.get(key)
        if found is not None:
            self.store(key, found)
        return found

    def store(self, key: K, value: V) -> None:
        """Sets the value of a key. Keeps nothing if the cache is of size 0."""
        if key not in self.young:
            characters = len(key) if isinstance(key, str) else sum(map(len, key))
            is_full = self._young_characters + characters > self._characters_max
            if is_full or len(self.young) >= self._generation_max:
                self.old, self.young = self.young, {}
                self._old_characters, self._young_characters = self._young_characters, 0
            self._young_characters += characters
        if self._generation_max > 0:
            self.young[key] = value
