"""Over a real NATS server in several processes: told once and in order, though workers are killed and the plan changes."""

import os
import signal
from contextlib import suppress
from random import Random

import pytest
from relay_plans import DOCUMENTS, OTHER_PATTERNS, PATTERNS, random_plan, views_of

from nats_server import nats_server
from tidings.model.errors import UsageError
from tidings.relay.errors import DocumentError
from tidings.relay.evaluate import evaluate_pattern
from tidings.relay.files import View
from tidings.relay.pattern import parse_pattern
from tidings.relay.plan import PUBLISHER, RelayPlan
from tidings.relay.runtime.nats import NatsRelay, run_relay_nats
from tidings.relay.runtime.nats.wire import RelayError
from tidings.relay.runtime.run import Switch
from tidings.relay.xml_document import parse_xml

VIEWS = views_of(PATTERNS)
OTHERS = [*VIEWS[2:], View("v1", parse_pattern(OTHER_PATTERNS[0]))]
COUNT = 40


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    with nats_server(tmp_path_factory.mktemp("nats")) as found:
        yield found


def document_at(number):
    return DOCUMENTS[number % len(DOCUMENTS)]


def expected(views_at):
    return [
        (view.id, f"{number}", rows)
        for number in range(COUNT)
        for view in sorted(views_at(number), key=lambda view: view.id)
        if (rows := evaluate_pattern(view.pattern, document_at(number)))
    ]


def streams(server):
    with server.connect() as connection:
        return [info.config.name for info in connection.run(connection.context.streams_info())]


def no_quarantine(document, view, reason):
    raise AssertionError((document, view, reason))


@pytest.mark.parametrize("seed", range(2))
def test_workers_are_killed_and_the_plan_changes(server, seed):
    random = Random(seed)
    before, behind = random_plan(random, VIEWS), random_plan(random, OTHERS)
    # Before, at, and behind the change of the plan: there are always documents under way.
    kills = {10: 1, 20: 2, 21: 1}

    def items(relay):
        for number in range(COUNT):
            if number == 20:
                yield Switch(behind, OTHERS)
            for pid in relay.pids[: kills.get(number, 0)]:
                with suppress(ProcessLookupError):  # killed before, and nobody has noticed
                    os.kill(pid, signal.SIGKILL)
            yield f"{number}", document_at(number)

    with NatsRelay(before, VIEWS, server.url, processes=2) as relay:
        started = set(relay.pids)
        found = list(relay.run(items(relay), no_quarantine))
        assert not set(relay.pids) & started
    assert found == expected(lambda number: VIEWS if number < 20 else OTHERS)
    assert streams(server) == []


def test_messages_of_finished_documents_are_removed(server):
    with NatsRelay(random_plan(Random(7), VIEWS), VIEWS, server.url, processes=1, window=2) as relay:

        def items():
            for number in range(COUNT):
                yield f"{number}", document_at(number)
            (stream,) = streams(server)
            kept.append(len(server.messages(stream)))

        kept = []
        assert list(relay.run(items(), no_quarantine)) == expected(lambda _: VIEWS)
    # Two documents under way, and up to two that are finished; per view, what it is fed, says and tells.
    assert kept[0] <= 5 * 3 * len(VIEWS)


def test_quarantine(server):
    put_aside = []
    documents = [("1", DOCUMENTS[0]), ("2", DocumentError("gone")), ("3", DOCUMENTS[0])]
    found = list(
        run_relay_nats(
            RelayPlan({"v1": (PUBLISHER,)}),
            VIEWS[1:2],
            documents,
            server.url,
            quarantine=lambda *words: put_aside.append(words),
            processes=1,
        )
    )
    assert [(view, name) for view, name, _ in found] == [("v1", "1"), ("v1", "3")]
    assert put_aside == [("2", None, "gone")]


def test_a_message_that_nats_does_not_take(server):
    large = parse_xml(b"<item><name>" + b"x" * (1 << 20) + b"</name></item>")
    plan = RelayPlan({"v1": (PUBLISHER,)})
    with pytest.raises(RelayError, match="raise max_payload"):
        list(run_relay_nats(plan, VIEWS[1:2], [("1", large)], server.url, quarantine=no_quarantine, processes=1))
    assert streams(server) == []


def test_a_worker_that_fails_by_itself_says_why(server):
    # What the publisher says fits into a message; what the subscriber is told of it does not.
    items = b"<a>" + b"".join(b"<b>" + b"x" * 400 + b"</b>" for _ in range(200)) + b"</a>"
    view = View("v", parse_pattern("//a[/b{id}]/b{id,val}"))
    run = run_relay_nats(
        RelayPlan({"v": (PUBLISHER,)}), [view], [("1", parse_xml(items))], server.url, quarantine=no_quarantine
    )
    with pytest.raises(RelayError, match="ended with code 1: a message has"):
        list(run)


def test_no_server():
    with pytest.raises(UsageError, match="cannot reach NATS"):
        NatsRelay(RelayPlan({"v1": (PUBLISHER,)}), VIEWS[1:2], "nats://127.0.0.1:1").__enter__()
