"""When to connect again, without I/O: which failures are final, and how long to wait after the others."""

from __future__ import annotations

import random

from tidings.client.errors import ServiceError
from tidings.client.following import Following

SECONDS_MAX = 10.0
_SECONDS_FIRST = 0.2
_PASSING = (408, 410, 429)


class Attempts:
    """Attempts to keep a stream open. Waits double up to ten seconds; half of each is random, so that clients which lost
    their service together do not come back together."""

    def __init__(self, following: Following, rng: random.Random | None = None) -> None:
        self._following = following
        self._rng = rng or random.Random()
        self._failures = 0
        self._has_been_open = False
        self.seconds_first = _SECONDS_FIRST
        """The first wait; `retry` of the service, once it has said so."""

    def opened(self) -> None:
        """A connection is open."""
        self._has_been_open = True
        self._following.opened()

    def heard(self, retry_ms: int | None) -> None:
        """Events have come: the service works."""
        self._failures = 0
        if retry_ms is not None:
            self.seconds_first = min(retry_ms / 1000, SECONDS_MAX)

    def cut(self) -> float:
        """A connection has ended. Gives the seconds to wait before the next one."""
        if self._following.is_torn:
            return 0.0
        most = min(SECONDS_MAX, self.seconds_first * 2.0 ** min(self._failures, 20))
        self._failures += 1
        return most * (0.5 + self._rng.random() / 2)

    def failed(self, error: ServiceError) -> float:
        """A connection could not be opened. Gives the seconds to wait before the next try, or raises the error.

        Refusals are final. That nobody answers is final too, as long as nobody ever has: the URL may be wrong.
        """
        if error.status == 410 and self._following.position is not None:
            self._following.forget_position()
            return 0.0
        is_refusal = 400 <= error.status < 500 and error.status not in _PASSING
        if is_refusal or not self._has_been_open:
            raise error
        return max(self.cut(), min(error.retry_after_seconds or 0.0, 60.0))
