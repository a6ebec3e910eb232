"""Sinks that hand over one message after the other: functions of Python, and web servers."""

from __future__ import annotations

import base64
import json
import os
import signal
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession
from standardwebhooks import Webhook

from in_process import tidings
from live_job import SessionJob
from live_run import CATALOG, QUERIES, Live, expected, wait_until
from tidings.endpoint import Endpoint
from tidings.model.errors import RunError, UsageError
from tidings.pipeline.warm import STEPS
from tidings.sinks import open_sink
from tidings.terminal import compile_kernels

SECRET = "whsec_" + base64.b64encode(bytes(range(32))).decode()


@pytest.fixture(scope="module", autouse=True)
def kernels() -> None:
    compile_kernels(STEPS)


class Receiver(ThreadingHTTPServer):
    """A web server that verifies and keeps what it gets. answers: status codes of the next requests, then always 204."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.answers: list[int] = []
        self.requests: list[tuple[int, str, dict[str, Any]]] = []
        """(status answered, webhook-id, body)."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_port}/hook?a=1"

    @property
    def told(self) -> list[tuple[str, dict[str, Any]]]:
        """(id, data) of the requests that succeeded."""
        return [(id, body["data"]) for status, id, body in self.requests if status == 204]


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Receiver

    def do_POST(self) -> None:
        body = self.rfile.read(int(self.headers["content-length"]))
        verified = Webhook(SECRET).verify(body, {name.lower(): value for name, value in self.headers.items()})
        status = self.server.answers.pop(0) if self.server.answers else 204
        assert self.path == "/hook?a=1"
        self.server.requests.append((status, self.headers["webhook-id"], verified))
        self.send_response(status)
        self.send_header("content-length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def receiver(monkeypatch: pytest.MonkeyPatch) -> Iterator[Receiver]:
    monkeypatch.setenv("TIDINGS_WEBHOOK_SECRET", SECRET)
    with Receiver() as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def lines(told: list[dict[str, Any]]) -> list[str]:
    """As in the output of a folder, where a micro-batch is sorted by seq and id."""
    return [json.dumps(each, ensure_ascii=False) for each in told]


def test_every_notification_is_posted_signed_and_in_order(tmp_path: Path, receiver: Receiver) -> None:
    """Also when the receiver fails, the job is stopped while it waits, and killed: what is repeated has the same id."""
    with Live(tmp_path, engine="inline") as live:
        live.put_changes()
        receiver.answers = [500, 302, *[204] * 3, *[503] * 50]
        run = live.start("--sink", f"webhook:{receiver.url}")
        wait_until(lambda: len(receiver.requests) >= 7, lambda: live.errors, run)
        os.killpg(run.pid, signal.SIGTERM)
        assert run.wait(60) == 0, live.errors
        assert "webhook 127.0.0.1: status 500; trying again in 1 s" in live.errors
        assert "the micro-batch that has begun is repeated by the next run" in live.errors
        receiver.answers = []
        run = live.start("--sink", f"webhook:{receiver.url}")
        wait_until(lambda: len(receiver.told) > 8, lambda: live.errors, run)
        run.kill()
        run.wait()
        live.put_changes()
        finished = live.start("--sink", f"webhook:{receiver.url}", "--trigger", "once")
        assert finished.wait(60) == 0, live.errors
        first: dict[str, dict[str, Any]] = {}
        for id, data in receiver.told:
            assert first.setdefault(id, data) == data, "the same id, the same contents"
        assert lines(list(first.values())) == expected(live.files)
        types = {body["type"] for _, _, body in receiver.requests}
        assert types == {"tidings.snapshot", "tidings.change"}
        assert all(id.replace("~", "").isalnum() for id in first)


def job_of(folder: Path, sink: str, *options: str, engine: str = "inline") -> SessionJob:
    ends = (Endpoint("files", str(folder / name)) for name in ("changes", "wishes"))
    return SessionJob(folder, CATALOG, *ends, Endpoint.parse(sink, list(options)), engine=engine)


def test_a_receiver_that_is_gone_ends_the_job(tmp_path: Path, receiver: Receiver) -> None:
    Live(tmp_path)
    receiver.answers = [410]
    with pytest.raises(RunError, match=r"the webhook 127.0.0.1 is gone \(410\): give the job another sink"):
        job_of(tmp_path, f"webhook:{receiver.url}").finish()
    assert receiver.told == []


def test_a_function_is_called_with_every_notification(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """If it raises, the job ends; started again it calls with the same micro-batch, and the same ids."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "receiving.py").write_text(
        "calls, is_mended = [], []\n"
        "class Nested:\n"
        "    def told(message):\n"
        "        calls.append(message)\n"
        "        if message['subscription'] == 's2' and not is_mended:\n"
        "            raise ValueError('not yet')\n"
    )
    live = Live(tmp_path)
    live.put_changes()
    job = job_of(tmp_path, "python:receiving:Nested.told")
    with pytest.raises(RunError, match=r"receiving:Nested.told failed for the message '.*': ValueError: not yet"):
        job.finish()
    module: Any = import_module("receiving")
    failed = len(module.calls)
    module.is_mended.append(True)
    job.finish()
    assert module.calls[:failed] == module.calls[failed : 2 * failed], "the same again"
    told = [dict(call) for call in module.calls[failed:]]
    assert len({each.pop("message_id") for each in told}) == len(told)
    assert {each.pop("kind") for each in told} == {"notification"}
    assert lines(told) == expected(live.files)


def test_messages_of_all_kinds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "receiving_all.py").write_text("calls = []")
    live = Live(tmp_path)
    live.put_bytes(b"nonsense")
    job_of(tmp_path, "python:receiving_all:calls.append", "kinds=all").finish()
    kinds = [call["kind"] for call in import_module("receiving_all").calls]
    assert sorted(set(kinds)) == ["answer", "notification", "refused"] and kinds.count("answer") == len(QUERIES)


@pytest.mark.spark
def test_spark_calls_a_function_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, spark: SparkSession) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "received_on_spark.py").write_text("told = []")
    live = Live(tmp_path)
    live.put_changes()
    job_of(tmp_path, "python:received_on_spark:told.append", engine="spark").finish()
    told: list[dict[str, Any]] = import_module("received_on_spark").told
    ids = [each.pop("message_id") for each in told]
    assert len(set(ids)) == len(told) and {each.pop("kind") for each in told} == {"notification"}
    assert sorted(lines(told)) == sorted(expected(live.files))


@pytest.mark.parametrize(
    ("sink", "options", "said"),
    [
        ("webhook:ftp://x/y", {"secret": SECRET}, "a webhook is an address such as"),
        ("webhook:https://a:b@x/y", {"secret": SECRET}, "a webhook is an address such as"),
        ("webhook:https://x/y\r\nz: 1", {"secret": SECRET}, "a webhook is an address such as"),
        ("webhook", {"secret": SECRET}, "needs url"),
        ("webhook:https://x/y", {}, "requests are signed with a secret"),
        ("webhook:https://x/y", {"secret": "whsec_short"}, "requests are signed with a secret"),
        ("webhook:https://x/y", {"secret": SECRET, "colour": "red"}, "has no option 'colour'; it has secret, kinds"),
        ("python:json:nope", {}, "the module 'json' has no function 'nope'"),
        ("python:json", {}, "a function is named MODULE:FUNCTION"),
        ("python:no.such:f", {}, "cannot import the module 'no.such': ModuleNotFoundError"),
        ("python:json:dumps", {"kinds": "some"}, "the option kinds is notifications or all"),
    ],
)
def test_what_is_wrong_is_said_before_the_start(sink: str, options: dict[str, str], said: str) -> None:
    with pytest.raises(UsageError) as caught:
        open_sink(Endpoint.parse(sink, [f"{name}={value}" for name, value in options.items()]), "")
    assert said in str(caught.value)


def test_the_command_names_what_there_is(tmp_path: Path) -> None:
    assert "python:MODULE:FUNCTION" in tidings(tmp_path, "run", "--help").stdout
