"""The grid tells of every pair once: whatever is delivered late, twice or never, and while the partition changes.

A world has a directory, servers and clients, and all messages between them on their way; any of these may be next. What is
reported is compared with the constraints that were there at the same time.
"""

from dataclasses import dataclass, field
from itertools import product
from math import inf
from random import Random

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from research.grid import (
    Client,
    Constraint,
    Directory,
    Farm,
    Intervals,
    Kind,
    Partition,
    Phase,
    RepartitionError,
    Report,
    Side,
    ToClient,
    ToDirectory,
    ToServer,
    balanced_cuts,
    report_code,
    report_codes,
    route,
)
from research.grid.messages import Answer, Build, Close, Copy, Join, Joined, Load, Open, Settle, Write
from tidings.model.codes import CODE_MAX, CODE_MIN

PUBLICATION, SUBSCRIPTION = Side.PUBLICATION, Side.SUBSCRIPTION


def symmetric(publication, subscription):
    return [
        (i, j)
        for (i, p), (j, s) in product(enumerate(publication), enumerate(subscription))
        if p.keys() <= s.keys() and all(p[name][0] <= s[name][1] and s[name][0] <= p[name][1] for name in p)
    ]


def classic(publication, subscription):
    return [(i, j) for j, i in symmetric(subscription, publication)]


MATCHING = {PUBLICATION: symmetric, SUBSCRIPTION: classic}

codes = st.sampled_from([CODE_MIN, CODE_MIN + 1, *range(8), CODE_MAX - 1, CODE_MAX])
ranges = st.tuples(codes, codes).map(lambda ends: (min(ends), max(ends)))
disjuncts = st.dictionaries(st.sampled_from("xxxyz"), ranges, min_size=1)
payloads = st.lists(disjuncts, min_size=1, max_size=3)
cut_codes = st.sets(codes.filter(lambda code: code > CODE_MIN), max_size=4).map(lambda cuts: tuple(sorted(cuts)))


def constraint_of(payload):
    return Constraint(tuple(disjunct.get("x") for disjunct in payload), payload)


def ranged(*intervals):
    return constraint_of([{"x": interval} for interval in intervals])


constraints = payloads.map(constraint_of)


# Who holds and who reports


@settings(max_examples=40)
@given(st.lists(constraints, max_size=8), cut_codes, st.sampled_from(Side), st.sampled_from(Side))
def test_many_are_routed_as_one(held, cuts, everywhere, side):
    partition = Partition(cuts, everywhere=everywhere)
    constraint, row = route(Intervals.of(held), partition, side)
    routed = list(zip(constraint.tolist(), row.tolist(), strict=True))
    assert routed == [(i, row) for i, each in enumerate(held) for row in partition.rows_of(side, each)]


@given(st.lists(codes), cut_codes)
def test_a_row_owns_the_codes_between_its_cuts(values, cuts):
    partition = Partition(cuts)
    ends = [CODE_MIN, *cuts, CODE_MAX + 1]
    rows = partition.owner_of(np.array(values, np.int64)).tolist()
    assert all(ends[row] <= value < ends[row + 1] for row, value in zip(rows, values, strict=True))
    assert rows == [partition.row_of(value) for value in values]


@settings(max_examples=60)
@given(constraints, constraints, cut_codes, st.sampled_from(Side))
def test_the_row_that_reports_a_pair_holds_both(publication, subscription, cuts, everywhere):
    partition = Partition(cuts, everywhere=everywhere)
    pairs = MATCHING[everywhere](publication.payload, subscription.payload)
    if pairs:
        row = partition.row_of(report_code(publication, subscription, pairs))
        assert row in partition.rows_of(PUBLICATION, publication)
        assert row in partition.rows_of(SUBSCRIPTION, subscription)


@given(st.lists(st.tuples(constraints, constraints), max_size=6), st.sampled_from(Side))
def test_many_pairs_are_reported_as_one(both, everywhere):
    matching = [(p, s, pairs) for p, s in both if (pairs := MATCHING[everywhere](p.payload, s.payload))]
    begins = [(Intervals.of([p]).begin[i], Intervals.of([s]).begin[j]) for p, s, pairs in matching for i, j in pairs]
    columns = np.array(begins, np.int64).reshape(-1, 2).T
    found = report_codes(*columns, np.cumsum([0, *(len(pairs) for _, _, pairs in matching)]))
    assert found.tolist() == [report_code(p, s, pairs) for p, s, pairs in matching]


@pytest.mark.parametrize("cuts", [(3, 3), (4, 3), (CODE_MIN,), (CODE_MAX + 1,)])
def test_cuts_that_leave_a_row_nothing_are_refused(cuts):
    with pytest.raises(ValueError, match="cuts must rise"):
        Partition(cuts)


@pytest.mark.parametrize("intervals", [(), ((2, 1),), (None, (0, CODE_MAX + 1))])
def test_constraints_without_a_meaning_are_refused(intervals):
    with pytest.raises(ValueError, match=r"disjuncts|interval"):
        Constraint(intervals, None)


# Cuts


def points(values):
    values = np.array(values, np.int64)
    return Intervals(values, values, np.ones(len(values), np.bool_), np.arange(len(values) + 1))


def shares(values, cuts):
    return np.bincount(Partition(cuts).owner_of(np.array(values, np.int64)), minlength=len(cuts) + 1)


@given(st.sets(st.integers(-1000, 1000), min_size=1), st.integers(1, 9))
def test_different_codes_are_shared_equally(values, rows):
    share = shares([*values], balanced_cuts(points([*values]), rows))
    assert len(share) == min(rows, len(values))
    assert share.max() - share.min() <= 1


@given(st.lists(st.sampled_from(range(20)), min_size=1), st.integers(1, 9))
def test_every_row_gets_something(values, rows):
    share = shares(values, balanced_cuts(points(values), rows))
    assert len(share) == min(rows, len({*values}))
    assert share.min() > 0


def test_a_frequent_code_has_a_row_of_its_own():
    values = [*range(10), *([50] * 100), *range(100, 110)]
    assert shares(values, balanced_cuts(points(values), 3)).tolist() == [10, 100, 10]


def test_open_ends_and_disjuncts_without_the_attribute_do_not_count():
    lo = np.array([CODE_MIN] * 50 + [CODE_MIN, 10, 5, 6], np.int64)
    hi = np.array([CODE_MAX] * 50 + [1, CODE_MAX, 5, 9], np.int64)
    has = np.array([True] * 50 + [True, True, True, False])
    assert balanced_cuts(Intervals(lo, hi, has, np.arange(55)), 3) == (5, 10)
    assert balanced_cuts(Intervals(lo[:50], hi[:50], has[:50], np.arange(51)), 3) == ()


# Worlds


@dataclass
class Operation:
    """Times count the steps of the world. The operation took place between `started` and `done`."""

    side: Side
    id: str
    constraint: Constraint | None
    started: float = inf
    done: float = inf


@dataclass
class Instance:
    """A constraint from the operation that made it to the one that ended it."""

    id: str
    number: int
    constraint: Constraint
    begin: Operation
    end: Operation = field(default_factory=lambda: Operation(PUBLICATION, "", None))

    def surely_overlaps(self, other):
        return self.begin.done <= other.end.started and other.begin.done <= self.end.started

    def surely_misses(self, other):
        return self.end.done <= other.begin.started or other.end.done <= self.begin.started


class World:
    """Everything, and the messages on their way."""

    def __init__(self, seed=0, everywhere=PUBLICATION, is_unreliable=False):
        self.random = Random(seed)
        self.match = MATCHING[everywhere]
        self.everywhere = everywhere
        self.is_unreliable = is_unreliable
        self.directory = Directory(copy_limit=2)
        self.farm = Farm(self.match)
        self.clients = {name: Client(name) for name in ("ann", "bob", "cid")}
        self.operations = {name: [] for name in self.clients}
        self.network = []
        self.farm_log = []
        self.reports = []
        self.answers = {}
        self.time = 0

    # What happens

    def repartition(self, cuts, columns=1):
        if self.directory.phase is Phase.STEADY:
            self.send(self.directory.repartition(Partition(cuts, columns, self.everywhere)))

    def write(self, side, id, constraint, name="ann"):
        client = self.clients[name]
        self.operations[name].append(Operation(side, id, constraint))
        if side is PUBLICATION:
            sent = client.delete(id) if constraint is None else client.publish(id, constraint)
        else:
            sent = client.unsubscribe(id) if constraint is None else client.subscribe(id, constraint)
        self.send(sent)
        self.note_progress()

    def send(self, messages):
        for message in messages:
            if isinstance(message, Report):
                self.reports.append(message)
            else:
                self.network.append(message)

    def deliver(self, place):
        """Delivers one of the messages on their way; from and to clients perhaps not, and any perhaps twice."""
        message = self.network.pop(place)
        fate = self.random.random() if self.is_unreliable else 1
        if fate < 0.1:
            self.network.append(message)
        elif fate < 0.2 and isinstance(message, Join | Joined | Write | Answer):
            return
        self.hand_over(message)
        self.note_progress()

    def hand_over(self, message):
        if isinstance(message, ToDirectory):
            self.send(self.directory.receive(message))
        elif isinstance(message, ToClient):
            self.send(self.clients[message.to].receive(message))
        else:
            assert isinstance(message, ToServer)
            is_there = message.to in self.farm.servers
            self.farm_log.append(message)
            sent = self.farm.receive(message)
            self.send(sent)
            for answer in sent:
                if is_there and isinstance(answer, Answer):
                    tried = (answer.to, answer.number, answer.server.version)
                    self.answers.setdefault(tried, set()).add(answer.is_applied)

    def crash(self):
        """All servers start again from the log of what they were given, and say all they said again."""
        self.farm = Farm(self.match)
        for message in self.farm_log:
            self.send(self.farm.receive(message))

    def note_progress(self):
        self.time += 1
        for name, operations in self.operations.items():
            client = self.clients[name]
            for operation in operations[: client.number]:
                operation.done = min(operation.done, self.time)
            for operation in operations[client.number : client.number + 1]:
                operation.started = min(operation.started, self.time)

    def run(self, steps):
        """Delivers so many messages, in any order."""
        for _ in range(min(steps, len(self.network))):
            if self.network:
                self.deliver(self.random.randrange(len(self.network)))

    def run_until(self, is_enough, step_max=20_000):
        for _ in range(step_max):
            if is_enough():
                return
            if not self.network:
                for client in self.clients.values():
                    self.send(client.resend())
            self.run(1)
        raise AssertionError("no end in sight")

    def finish(self):
        """Lets all operations and the change of partition come to their end."""
        if self.directory.version == 0:
            self.repartition(())
        self.run_until(lambda: not any(client.pending for client in self.clients.values()))
        self.is_unreliable = False
        self.run_until(lambda: not self.network)

    # What is expected

    def instances(self, side):
        found = []
        for operations in self.operations.values():
            current = {}
            for number, operation in enumerate(operations, 1):
                if operation.side is not side:
                    continue
                if operation.id in current:
                    current.pop(operation.id).end = operation
                if operation.constraint is not None:
                    instance = Instance(operation.id, number, operation.constraint, operation)
                    current[operation.id] = instance
                    found.append(instance)
        return found

    def check(self):
        reported = {report.id: report for report in self.reports}.values()
        kinds = {}
        for report in reported:
            pair = (report.publication, report.publication_number, report.subscription, report.subscription_number)
            assert report.kind not in kinds.setdefault(pair, set())
            kinds[pair].add(report.kind)
        for publication, subscription in product(self.instances(PUBLICATION), self.instances(SUBSCRIPTION)):
            pair = (publication.id, publication.number, subscription.id, subscription.number)
            self.check_pair(publication, subscription, kinds.pop(pair, set()))
        assert not kinds
        assert all(len(outcomes) == 1 for outcomes in self.answers.values())
        self.check_held()

    def check_pair(self, publication, subscription, kinds):
        is_match = bool(self.match(publication.constraint.payload, subscription.constraint.payload))
        if not is_match or publication.surely_misses(subscription):
            assert not kinds
        elif publication.surely_overlaps(subscription):
            assert Kind.MATCH in kinds
        if publication.end.done == inf or subscription.end.done <= publication.end.started:
            assert Kind.END not in kinds
        elif Kind.MATCH in kinds and publication.end.done <= subscription.end.started:
            assert Kind.END in kinds
        assert Kind.MATCH in kinds or Kind.END not in kinds

    def check_held(self):
        """Every server in force holds what it should and nothing else."""
        partition, version = self.directory.partition, self.directory.version
        assert self.farm.servers.keys() == {*partition.servers(version)}
        expected = {(server, side): set() for server in self.farm.servers for side in Side}
        for side in Side:
            for each in self.instances(side):
                if each.end.done == inf:
                    rows = partition.rows_of(side, each.constraint)
                    for server in partition.servers_of(version, side, each.id, rows):
                        expected[server, side].add((each.id, each.number))
        for (address, side), names in expected.items():
            held = self.farm.servers[address].held(side)
            assert len(held) == len(names)
            assert {(each.id, each.number) for each in held} == names


def random_range(random):
    lo, hi = sorted(random.choices([CODE_MIN, *range(12), CODE_MAX], k=2))
    return lo, random.choice([lo, lo if lo == CODE_MAX else lo + 1, hi])


def random_constraint(random):
    names = random.choices(["x", "xy", "y", "xyz"], [6, 3, 2, 1], k=random.randint(1, 3))
    return constraint_of([{name: random_range(random) for name in each} for each in names])


def script_of(random, length):
    """Steps of a world: what is done, with what."""
    for _ in range(length):
        step = random.choices(["write", "run", "repartition"], [8, 5, 3])[0]
        if step == "write":
            constraint = random_constraint(random) if random.random() < 0.8 else None
            yield step, random.choice([*Side]), random.randrange(9), constraint
        elif step == "run":
            yield step, random.randrange(80)
        else:
            yield step, tuple(sorted(random.sample(range(12), random.randint(0, 3)))), random.randint(1, 2)


def play(world, script, *, is_sequential=False):
    names = [*world.clients]
    for step, *arguments in script:
        if step == "write":
            side, number, constraint = arguments
            # An id belongs to one client: the number in it says to whom.
            name = names[number % len(names)]
            world.write(side, f"{side.value} {number}", constraint, name)
            if is_sequential:
                world.run_until(lambda name=name: not world.clients[name].pending)
        elif step == "repartition":
            world.repartition(*arguments)
        else:
            world.run(*arguments)


seeds = st.integers(0, 2**32)
lengths = st.integers(0, 150)


@settings(max_examples=40)
@given(seeds, lengths, st.sampled_from(Side))
def test_every_pair_is_reported_once(seed, length, everywhere):
    world = World(seed, everywhere)
    play(world, script_of(Random(seed), length))
    world.finish()
    world.check()
    assert len({report.id for report in world.reports}) == len(world.reports)


@settings(max_examples=35)
@given(seeds, lengths)
def test_every_pair_is_reported_once_though_messages_are_lost_and_repeated(seed, length):
    world = World(seed, is_unreliable=True)
    play(world, script_of(Random(seed), length))
    world.finish()
    world.check()
    assert len({report.id for report in world.reports}) == len(world.reports)


@settings(max_examples=35)
@given(seeds, lengths, st.sampled_from(Side))
def test_reports_are_exact_when_operations_follow_each_other(seed, length, everywhere):
    """Nothing is left open to chance here: of two operations, one is done before the other starts."""
    world = settled_world((2, 5), seed=seed, everywhere=everywhere)
    play(world, script_of(Random(seed), length), is_sequential=True)
    world.finish()
    world.check()
    expected = []
    for publication, subscription in product(world.instances(PUBLICATION), world.instances(SUBSCRIPTION)):
        assert publication.surely_overlaps(subscription) != publication.surely_misses(subscription)
        is_match = world.match(publication.constraint.payload, subscription.constraint.payload)
        if is_match and publication.surely_overlaps(subscription):
            expected.append((publication.id, publication.number, subscription.id, subscription.number))
    found = [report for report in world.reports if report.kind is Kind.MATCH]
    told = [(each.publication, each.publication_number, each.subscription, each.subscription_number) for each in found]
    assert sorted(told) == sorted(expected)


@settings(max_examples=35)
@given(seeds, lengths, lengths)
def test_servers_that_start_again_repeat_reports_under_the_same_ids(seed, before, after):
    world = World(seed)
    random = Random(seed)
    play(world, script_of(random, before))
    world.crash()
    play(world, script_of(random, after))
    world.finish()
    world.check()


# Single cases


def settled_world(cuts, columns=1, **options):
    world = World(**options)
    world.repartition(cuts, columns)
    world.run_until(lambda: not world.network)
    return world


def done(world, *write):
    world.write(*write)
    world.run_until(lambda: not any(client.pending for client in world.clients.values()))


def matches(world):
    return [(report.publication, report.subscription) for report in world.reports if report.kind is Kind.MATCH]


def test_a_pair_that_matches_in_several_rows_is_reported_by_one():
    world = settled_world((10, 20, 30))
    done(world, PUBLICATION, "p", ranged((0, 40)))
    done(world, SUBSCRIPTION, "s", ranged((32, 35), (12, 13), (22, 28)))
    assert matches(world) == [("p", "s")]


def test_a_stale_version_is_refused_by_all_rows_and_tried_again():
    world = settled_world((10,))
    done(world, SUBSCRIPTION, "s", ranged((0, 30)))
    world.repartition((20,))
    world.run_until(lambda: not world.network)
    world.write(PUBLICATION, "p", ranged((5, 15)))
    assert {message.to.version for message in world.network} == {1}
    assert [message.to.row for message in world.network] == [0, 1]
    world.run(2)
    assert sorted((message.server.row, message.is_applied) for message in world.network) == [(0, False), (1, False)]
    assert not matches(world)
    world.run_until(lambda: not world.network)
    assert world.clients["ann"].version == 2
    assert matches(world) == [("p", "s")]


def deliver_all(world, *, but):
    """Delivers all but messages of this kind, and what they lead to."""
    while (
        place := next((i for i, message in enumerate(world.network) if not isinstance(message, but)), None)
    ) is not None:
        world.deliver(place)


def test_the_old_version_serves_while_the_new_one_is_built():
    world = settled_world((10,))
    done(world, SUBSCRIPTION, "s", ranged((0, 30)))
    world.repartition((20,))
    deliver_all(world, but=Copy)
    assert world.directory.phase is Phase.COPY
    world.write(PUBLICATION, "p", ranged((5, 15)))
    deliver_all(world, but=Copy)
    assert not world.clients["ann"].pending
    assert matches(world) == [("p", "s")]
    world.finish()
    assert world.directory.version == 2
    world.check()


def test_copying_ends_however_much_is_written_meanwhile():
    world = settled_world(())
    for n in range(20):
        done(world, PUBLICATION, f"old {n}", ranged((n, n)))
    world.repartition((10,))
    rounds = 0
    deliver_all(world, but=Copy)
    while world.directory.phase is Phase.COPY and rounds < 100:
        rounds += 1
        for n in range(5):
            world.write(PUBLICATION, f"new {rounds} {n}", ranged((n, n)))
        deliver_all(world, but=Copy)
        assert not world.clients["ann"].pending
        world.deliver(0)
        deliver_all(world, but=Copy)
    # 25 are held when the first piece is copied, and every piece leaves two fewer.
    assert rounds == 13
    world.finish()
    world.check()


def test_who_joins_while_the_version_changes_is_answered_with_the_new_one():
    world = settled_world((10,))
    world.repartition((20,))
    deliver_all(world, but=Open)
    world.write(PUBLICATION, "p", ranged((5, 25)), "bob")
    deliver_all(world, but=Open)
    assert world.clients["bob"].version == 0
    world.run_until(lambda: not world.network)
    assert world.clients["bob"].version == 2
    assert not world.clients["bob"].pending


def test_a_write_that_some_rows_applied_before_they_closed_is_applied_by_all():
    world = settled_world((10,))
    done(world, SUBSCRIPTION, "left", ranged((0, 5)))
    done(world, SUBSCRIPTION, "right", ranged((12, 30)))
    world.repartition((20,))
    deliver_all(world, but=Close)
    world.write(PUBLICATION, "p", ranged((0, 3), (13, 14)))
    first, second = [message for message in world.network if isinstance(message, Write)]
    world.deliver(world.network.index(first))
    assert matches(world) == [("p", "left")]
    deliver_all(world, but=Write | Settle)
    world.deliver(world.network.index(second))
    assert matches(world) == [("p", "left")]
    assert world.clients["ann"].pending
    deliver_all(world, but=Write)
    assert matches(world) == [("p", "left"), ("p", "right")]
    assert not world.clients["ann"].pending
    world.check()


def test_a_replaced_publication_ends_its_pairs_and_makes_new_ones():
    world = settled_world((10,), columns=3)
    done(world, SUBSCRIPTION, "left", ranged((0, 5)))
    done(world, SUBSCRIPTION, "right", ranged((12, 30)), "bob")
    done(world, PUBLICATION, "p", ranged((4, 4)))
    done(world, PUBLICATION, "p", ranged((4, 15)))
    told = [(report.kind, report.client, report.subscription, report.publication_number) for report in world.reports]
    assert told[0] == (Kind.MATCH, "ann", "left", 2)
    assert sorted(told[1:], key=str) == sorted(
        [(Kind.END, "ann", "left", 2), (Kind.MATCH, "ann", "left", 3), (Kind.MATCH, "bob", "right", 3)], key=str
    )


def test_a_client_that_starts_again_tries_its_last_operation_under_the_same_number():
    world = settled_world((10,))
    done(world, SUBSCRIPTION, "s", ranged((0, 30)))
    world.write(PUBLICATION, "p", ranged((5, 15)))
    world.run(1)
    ann = world.clients["ann"]
    world.clients["ann"] = Client("ann", number=ann.number, held=ann.held)
    world.send(world.clients["ann"].publish("p", ranged((5, 15))))
    world.run_until(lambda: not world.network)
    assert world.clients["ann"].number == 2
    assert matches(world) == [("p", "s")]


def test_a_publication_has_one_server_in_a_row_and_a_subscription_all():
    partition = Partition((10,), columns=4)
    for side, counts in ((PUBLICATION, {1}), (SUBSCRIPTION, {4})):
        columns = [partition.columns_of(side, f"id {n}") for n in range(100)]
        assert {len(each) for each in columns} == counts
        assert {column for each in columns for column in each} == {0, 1, 2, 3}


def test_a_constraint_is_copied_once_to_each_of_its_new_servers():
    world = settled_world((10, 20), columns=2)
    done(world, SUBSCRIPTION, "s", ranged((0, 30)))
    done(world, PUBLICATION, "p", ranged((0, 30)))
    world.repartition((15,), columns=3)
    deliver_all(world, but=Load)
    copied = [held.id for message in world.network for held, _ in message.entries]
    assert sorted(copied) == ["p"] * 2 + ["s"] * 6


def test_a_repeated_message_does_not_bring_a_server_back():
    world = settled_world((10,))
    build = next(message for message in world.farm_log if isinstance(message, Build))
    world.repartition(())
    world.run_until(lambda: not world.network)
    assert world.farm.receive(build) == []
    assert {server.version for server in world.farm.servers} == {2}


def test_one_change_of_partition_at_a_time():
    world = settled_world(())
    world.repartition((1,))
    with pytest.raises(RepartitionError, match="version 2 is still being made"):
        world.directory.repartition(Partition((2,)))
