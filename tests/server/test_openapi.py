"""The service keeps to its own description: schemathesis makes requests from /openapi.json and looks at every answer."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from service_process import Service, create, post, stock
from tidings.server.api.app import App
from tidings.server.api.openapi import openapi

# Which queries and URLs are taken, and which version is there, no schema can say.
CONFIG = """
[checks.positive_data_acceptance]
expected-statuses = ["2xx", 401, 403, 404, 409, 410, 412, 422, 429]

[checks.negative_data_rejection]
expected-statuses = [400, 401, 403, 404, 405, 409, 410, 412, 415, 422, 429]
"""
# Streams have no end, so a tool that waits for it sees nothing but its own timeout.
STREAMS = r"/stream$"


def check(service: Service, folder: Path, config: str, examples: int, *options: str) -> str:
    """Runs schemathesis as a user would. Gives its summary."""
    (folder / "schemathesis.toml").write_text(CONFIG + config)
    command = [str(Path(sys.executable).parent / "st"), "run", f"{service.url}/openapi.json"]
    command += ["--header", f"Authorization: Bearer {service.key}", "--exclude-path-regex", STREAMS]
    command += ["--max-examples", str(examples), "--seed", "1", "--request-timeout", "20", "--continue-on-failure"]
    environment = {**os.environ, "NO_COLOR": "1", "COLUMNS": "200"}
    done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=folder, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.parametrize("examples", [5, pytest.param(300, marks=pytest.mark.extended)])
def test_schemathesis_finds_nothing(tmp_path: Path, examples: int) -> None:
    """Once with ids of its own making, most of which nobody has, and once with those of things that are there."""
    options = ["--quota", "creations_per_second=100000", "--allow-private-webhooks"]
    with Service(tmp_path, *options, has_keys=True) as service:
        said = check(service, tmp_path, "", examples)
        assert int(re.findall(r"(\d+) generated", said)[0]) > 1000
        with service.client() as client:
            create(client, "there", "SELECT symbol, price FROM stocks WHERE price < 500")
            post(client, [stock("A", 1.0), stock("B", 2.0)])
            # Nobody listens there, and no request leaves the machine.
            for path, body in (
                ("targets", {"id": "there", "url": "http://127.0.0.1:9/"}),
                ("tenants", {"id": "there"}),
            ):
                assert client.post(f"/v1/{path}", json=body).status_code == 201
        ids = '[parameters]\nid = "there"\nt = "there"\nwait_seconds = 0\n'
        check(service, tmp_path, ids, examples, "--phases", "coverage,fuzzing", "--exclude-method", "DELETE")
        assert "Traceback" not in service.log() and "failed" not in service.log()


def test_all_routes_are_described_and_nothing_else() -> None:
    class Nothing:
        """Routes are made without a front; none is called."""

    app = App(Nothing())  # type: ignore[arg-type]
    routes = {(route.path, method.lower()) for route, methods in app._routes for method in methods}
    streams = {(route.path, "get") for route in app._sse}
    described = {(path, method) for path, methods in openapi()["paths"].items() for method in methods}
    assert described == routes | streams


def test_the_description_is_served_as_it_is_and_says_what_a_client_needs(service: Service) -> None:
    with service.client() as client:
        found = client.get("/openapi.json")
        assert found.headers["content-type"] == "application/json"
        assert found.json() == json.loads(json.dumps(openapi()))
    assert found.json()["openapi"] == "3.1.0"
    for path, methods in found.json()["paths"].items():
        for method, each in methods.items():
            codes = set(each["responses"])
            assert any(code < "300" for code in codes), (path, method)
            assert ("401" in codes) == bool(each["security"]), (path, method)
            for response in each["responses"].values():
                for content in response["content"].values():
                    assert content["schema"], (path, method)
