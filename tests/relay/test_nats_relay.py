"""Over a real NATS server in several processes: told once and in order, though workers are killed and the plan changes."""

import os
import shutil
import signal
import sys
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
from tidings.relay.runtime.nats.connection import RelayError
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
        if (rows := evaluate_pattern(view.query, document_at(number)))
    ]


def streams(server):
    with server.connect() as connection:
        return [info.config.name for info in connection.run(connection.context.streams_info())]


def no_quarantine(document, view, reason):
    raise AssertionError((document, view, reason))


@pytest.mark.parametrize("seed", [0, pytest.param(1, marks=pytest.mark.extended)])
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
    # Two documents under way, and up to three that are finished; per view, what it is fed and what it says.
    assert kept[0] <= 5 * 2 * len(VIEWS)


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


def test_messages_that_are_too_large_for_nats_go_in_pieces(server):
    document = parse_xml(b"<a>" + b"".join(b"<b>%d" % n + b"x" * 4000 + b"</b>" for n in range(300)) + b"</a>")
    views = [View("v1", parse_pattern("//b{val}")), View("v2", parse_pattern("/a[/b{val}]{id}"))]
    plan = RelayPlan({"v1": (PUBLISHER,), "v2": (PUBLISHER,)})
    stream = [("1", document), ("2", document)]
    with NatsRelay(plan, views, server.url, processes=1) as relay:

        def items():
            yield stream[0]
            os.kill(relay.pids[0], signal.SIGKILL)
            yield stream[1]

        found = list(relay.run(items(), no_quarantine))
    assert found == [(view.id, name, evaluate_pattern(view.query, document)) for name, _ in stream for view in views]


def test_a_worker_that_ends_by_itself(server, monkeypatch):
    monkeypatch.setattr(sys, "executable", shutil.which("false"))
    plan = RelayPlan({"v1": (PUBLISHER,)})
    with pytest.raises(RelayError, match="ended with code 1"):
        list(run_relay_nats(plan, VIEWS[1:2], [("1", DOCUMENTS[0])], server.url, quarantine=no_quarantine))
    assert streams(server) == []


def test_no_server():
    with pytest.raises(UsageError, match="cannot reach NATS"):
        NatsRelay(RelayPlan({"v1": (PUBLISHER,)}), VIEWS[1:2], "nats://127.0.0.1:1").__enter__()
