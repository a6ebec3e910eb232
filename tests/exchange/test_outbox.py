"""Notices are handed on at least once, in order, and noted as delivered only afterwards; receivers act on each once."""

from __future__ import annotations

import pytest
from sqlalchemy import Column, Connection, MetaData, Table, Text, insert, select

from tidings.exchange import Inbox, Notice, Outbox, Store
from tidings.exchange.outbox import add

NOTICES = [Notice(f"n{number}", "ab"[number % 2], {"number": number}) for number in range(7)]
effects = Table("effects", MetaData(), Column("id", Text))


class OutOfReach(Exception):
    pass


@pytest.fixture
def filled(store: Store) -> Store:
    store.write(lambda connection: add(connection, NOTICES))
    return store


@pytest.mark.parametrize("batch", [1, 3, 100])
def test_all_are_handed_on_in_order_and_once(filled: Store, batch: int) -> None:
    found: list[Notice] = []
    assert Outbox(filled).pending() == 7
    assert Outbox(filled).deliver(found.append, batch=batch) == 7
    assert found == NOTICES
    assert (Outbox(filled).pending(), Outbox(filled).deliver(found.append)) == (0, 0)


def test_nothing_is_handed_on_of_a_transaction_that_failed(store: Store) -> None:
    def failing(connection: Connection) -> None:
        add(connection, NOTICES)
        raise OutOfReach

    with pytest.raises(OutOfReach):
        store.write(failing)
    assert Outbox(store).pending() == 0


@pytest.mark.parametrize("batch", [1, 4, 100])
def test_a_send_that_fails_is_tried_again_and_none_is_skipped(filled: Store, batch: int) -> None:
    found: list[Notice] = []

    def send(notice: Notice) -> None:
        if notice.id == "n5" and len(found) == 5:
            found.append(notice)
            raise OutOfReach
        found.append(notice)

    with pytest.raises(OutOfReach):
        Outbox(filled).deliver(send, batch=batch)
    assert Outbox(filled).pending() == 2
    assert Outbox(filled).deliver(send, batch=batch) == 2
    assert [notice.id for notice in found] == ["n0", "n1", "n2", "n3", "n4", "n5", "n5", "n6"]


def test_one_destination_does_not_wait_for_another(filled: Store) -> None:
    found: list[Notice] = []
    assert Outbox(filled).deliver(found.append, destination="b", batch=2) == 3
    assert found == NOTICES[1::2]
    assert Outbox(filled).deliver(found.append) == 4
    assert found[3:] == NOTICES[::2]


def test_several_deliverers_repeat_and_keep_the_order(filled: Store) -> None:
    found: list[Notice] = []

    def interrupted(notice: Notice) -> None:
        found.append(notice)
        if notice.id == "n3":
            Outbox(filled).deliver(found.append)

    Outbox(filled).deliver(interrupted)
    assert list(dict.fromkeys(notice.id for notice in found)) == [notice.id for notice in NOTICES]
    assert len(found) > len(NOTICES)
    assert Outbox(filled).pending() == 0


def test_what_was_delivered_can_be_discarded(filled: Store) -> None:
    found: list[Notice] = []
    Outbox(filled).deliver(found.append, destination="a")
    assert Outbox(filled).discard_delivered() == 4
    filled.write(lambda connection: add(connection, [Notice("later", "a", {})]))
    Outbox(filled).deliver(found.append)
    assert [notice.id for notice in found[4:]] == ["n1", "n3", "n5", "later"]


def test_a_receiver_acts_once_on_each_notice(store: Store) -> None:
    store.write(effects.create)
    inbox, other = Inbox(store, "bob"), Inbox(store, "cem")

    def note(connection: Connection, notice: Notice) -> None:
        connection.execute(insert(effects).values(id=notice.id))

    def fail(connection: Connection, notice: Notice) -> None:
        note(connection, notice)
        raise OutOfReach

    with pytest.raises(OutOfReach):
        inbox.receive(NOTICES[0], fail)
    answers = [inbox.receive(NOTICES[number], note) for number in (0, 1, 0, 1, 2)]
    assert answers == [True, True, False, False, True]
    assert other.receive(NOTICES[0], note)
    assert store.read(lambda connection: list(connection.scalars(select(effects.c.id)))) == ["n0", "n1", "n2", "n0"]
