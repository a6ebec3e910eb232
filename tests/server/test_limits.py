"""Quotas: what a tenant may have, and how fast it may create, by a clock that the test moves."""

from __future__ import annotations

import pytest

from tidings.model.errors import UsageError
from tidings.server import limits
from tidings.server.limits import Limiter, QuotaError, Quotas


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


def test_the_limits_are_those_of_the_contract() -> None:
    assert Quotas() == Quotas(10_000, 1_000, 20)
    assert (limits.JSON_BODY_BYTES_MAX, limits.BULK_BODY_BYTES_MAX, limits.LINE_BYTES_MAX) == (2**20, 2**26, 2**24)
    assert (limits.SQL_CHARACTERS_MAX, limits.HEADER_BYTES_MAX, limits.HEADER_SECONDS_MAX) == (65_536, 16_384, 10)
    assert (limits.BODY_BYTES_PER_SECOND_MIN, limits.CONNECTION_SUBSCRIPTIONS_MAX) == (1_000, 100)
    assert (limits.CLIENT_FRAME_BYTES_MAX, limits.SERVER_FRAME_BYTES_MAX) == (2**16, 2**20)


def test_twenty_creations_a_second() -> None:
    clock = Clock()
    limiter = Limiter(Quotas(), clock=clock)
    for _ in range(20):
        limiter.take_creation("a")
    with pytest.raises(QuotaError) as error:
        limiter.take_creation("a")
    assert (error.value.code, error.value.retry_after) == ("rate", 1)
    limiter.take_creation("b")
    clock.now += 0.125
    for _ in range(2):
        limiter.take_creation("a")
    with pytest.raises(QuotaError):
        limiter.take_creation("a")
    clock.now += 1000
    for _ in range(20):
        limiter.take_creation("a")
    with pytest.raises(QuotaError):
        limiter.take_creation("a")


def test_subscriptions_and_connections() -> None:
    limiter = Limiter(Quotas())
    limiter.check_subscriptions("a", 9_999)
    with pytest.raises(QuotaError) as error:
        limiter.check_subscriptions("a", 10_000)
    assert error.value.code == "quota"
    for _ in range(1_000):
        limiter.open_connection("a")
    with pytest.raises(QuotaError):
        limiter.open_connection("a")
    limiter.open_connection("b")
    limiter.close_connection("a")
    limiter.open_connection("a")
    assert (limiter.connections("a"), limiter.connections("b")) == (1_000, 1)


def test_a_tenant_may_have_numbers_of_its_own() -> None:
    limiter = Limiter(Quotas.parse(["connections=2"]))
    limiter.set_tenant("a", {"connections": 3, "creations_per_second": 1})
    assert limiter.quotas_of("a") == Quotas(10_000, 3, 1)
    assert limiter.quotas_of("b") == Quotas(10_000, 2, 20)
    limiter.take_creation("a")
    with pytest.raises(QuotaError):
        limiter.take_creation("a")
    limiter.set_tenant("a", {})
    assert limiter.quotas_of("a") == limiter.quotas_of("b")
    # Without authentication there are none.
    free = Limiter(Quotas.none())
    for _ in range(2_000):
        free.take_creation("a")
        free.open_connection("a")
    free.check_subscriptions("a", 10**9)


@pytest.mark.parametrize("setting", ["connections", "connections=", "connections=-1", "connections=0", "rows=5", "=5"])
def test_settings_that_cannot_be_used(setting: str) -> None:
    with pytest.raises(UsageError):
        Quotas.parse([setting])
