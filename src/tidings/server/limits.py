"""How much a tenant may have and do, and how large requests may be.

Quotas are per tenant and can be set (`serve --quota NAME=N`, or a tenant's own). The sizes below hold for everybody.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping
from typing import Literal

import msgspec

from tidings.model.errors import TidingsError, UsageError

JSON_BODY_BYTES_MAX = 1 << 20
BULK_BODY_BYTES_MAX = 64 << 20
LINE_BYTES_MAX = 16 << 20
SQL_CHARACTERS_MAX = 65_536
HEADER_BYTES_MAX = 16 << 10
HEADER_SECONDS_MAX = 10.0
BODY_BYTES_PER_SECOND_MIN = 1_000
CONNECTION_SUBSCRIPTIONS_MAX = 100
CLIENT_FRAME_BYTES_MAX = 64 << 10
SERVER_FRAME_BYTES_MAX = 1 << 20

_RETRY_SECONDS = 60
"""When to try again after a quota of things that go only when somebody removes them."""
_BUCKETS_MAX = 10_000


class QuotaError(TidingsError):
    """A tenant has used up a quota. code: `rate` if waiting helps, else `quota`; retry_after: whole seconds."""

    def __init__(self, name: str, retry_after: int, limit: int) -> None:
        self.name = name
        self.retry_after = retry_after
        self.limit = limit
        self.code: Literal["rate", "quota"] = "rate" if name == "creations_per_second" else "quota"
        super().__init__(f"the quota {name} is {limit}; try again in {retry_after} s")


class Quotas(msgspec.Struct, frozen=True):
    """What each tenant may have; None: as much as it likes."""

    subscriptions: int | None = 10_000
    connections: int | None = 1_000
    creations_per_second: int | None = 20

    @classmethod
    def parse(cls, settings: Iterable[str]) -> Quotas:
        """The defaults with `NAME=N` settings instead."""
        chosen = {}
        for setting in settings:
            name, equals, number = setting.partition("=")
            if not equals or not (number.isascii() and number.isdigit() and len(number) < 16):
                raise UsageError(f"--quota {setting!r} must be NAME=N with a whole number, such as subscriptions=5000")
            chosen[name] = int(number)
        return cls().replaced(chosen)

    @classmethod
    def none(cls) -> Quotas:
        """No bounds, for `--no-auth`."""
        return cls(None, None, None)

    def replaced(self, numbers: Mapping[str, int]) -> Quotas:
        """These, with a tenant's own numbers. UsageError if a name is unknown or a number below 1."""
        for name, number in numbers.items():
            if name not in self.__struct_fields__:
                raise UsageError(f"there is no quota {name!r}: use {', '.join(self.__struct_fields__)}")
            if number < 1:
                raise UsageError(f"the quota {name} must be at least 1")
        return msgspec.structs.replace(self, **numbers)


class TokenBucket:
    """Lets `rate` through a second, and up to that many at once after a pause."""

    def __init__(self, rate: float, now: float) -> None:
        self.rate = rate
        self._tokens = self._capacity = max(1.0, rate)
        self._at = now

    def take(self, now: float) -> float:
        """Takes one and gives 0; or takes none and gives the seconds until there is one."""
        self._refill(now)
        if self._tokens >= 1:
            self._tokens -= 1
            return 0.0
        return (1 - self._tokens) / self.rate

    def is_full(self, now: float) -> bool:
        self._refill(now)
        return self._tokens >= self._capacity

    def _refill(self, now: float) -> None:
        if now > self._at:
            self._tokens = min(self._capacity, self._tokens + (now - self._at) * self.rate)
            self._at = now


class Limiter:
    """Holds tenants to their quotas. clock: seconds that only grow. For one thread, the event loop's."""

    def __init__(self, quotas: Quotas, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._quotas = quotas
        self._clock = clock
        self._own: dict[str, Quotas] = {}
        self._buckets: dict[str, TokenBucket] = {}
        self._connections: dict[str, int] = {}

    def quotas_of(self, tenant: str) -> Quotas:
        return self._own.get(tenant, self._quotas)

    def set_tenant(self, tenant: str, quota: Mapping[str, int]) -> None:
        """Gives a tenant its own numbers; none: the general ones again. UsageError if a name is unknown."""
        if quota:
            self._own[tenant] = self._quotas.replaced(quota)
        else:
            self._own.pop(tenant, None)
        self._buckets.pop(tenant, None)

    def take_creation(self, tenant: str) -> None:
        """Counts one creation, or raises QuotaError. Bulk requests do not call this."""
        rate = self.quotas_of(tenant).creations_per_second
        if rate is None:
            return
        now = self._clock()
        bucket = self._buckets.get(tenant)
        if bucket is None:
            if len(self._buckets) >= _BUCKETS_MAX:
                # A full bucket is as good as none.
                self._buckets = {name: kept for name, kept in self._buckets.items() if not kept.is_full(now)}
            bucket = self._buckets[tenant] = TokenBucket(rate, now)
        wait = bucket.take(now)
        if wait > 0:
            raise QuotaError("creations_per_second", max(1, math.ceil(wait)), rate)

    def check_subscriptions(self, tenant: str, held: int, wanted: int = 1) -> None:
        """Raises QuotaError if a tenant that holds so many must not have the wanted ones too."""
        limit = self.quotas_of(tenant).subscriptions
        if limit is not None and held + wanted > limit:
            raise QuotaError("subscriptions", _RETRY_SECONDS, limit)

    def open_connection(self, tenant: str) -> None:
        """Counts a connection, or raises QuotaError. Whoever was let in calls `close_connection` once."""
        limit = self.quotas_of(tenant).connections
        held = self._connections.get(tenant, 0)
        if limit is not None and held >= limit:
            raise QuotaError("connections", _RETRY_SECONDS, limit)
        self._connections[tenant] = held + 1

    def close_connection(self, tenant: str) -> None:
        held = self._connections.get(tenant, 0) - 1
        if held > 0:
            self._connections[tenant] = held
        else:
            self._connections.pop(tenant, None)

    def connections(self, tenant: str) -> int:
        """How many connections of the tenant are open."""
        return self._connections.get(tenant, 0)
