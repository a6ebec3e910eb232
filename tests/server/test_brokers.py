"""`tidings broker` between a job and gateways as people run it: real processes, folders, and a real NATS server."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from test_gateways import PLACE, QUERIES, change, check

from nats_server import nats_server
from place_processes import BrokerProcess, GatewayProcess, PlacesJob, until
from service_process import CATALOG, create


def run(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "tidings.cli.main", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=120)


@pytest.mark.extended
@pytest.mark.parametrize("way", ["files", "nats"])
def test_gateways_behind_a_broker(tmp_path: Path, way: str) -> None:
    """The broker writes elsewhere than it reads, so requests go through it; paris is next to the job."""
    with nats_server(tmp_path / "jetstream") as server:
        places = ["--sink-option", "places=eu/berlin,paris"]
        if way == "files":
            sink, feed, options = f"places:files:{tmp_path / 'parcels'}", f"files:{tmp_path / 'parcels'}", []
            below, own = f"files:{tmp_path / 'below'}", ["--sink", f"places:files:{tmp_path / 'below'}"]
        else:
            sink, feed, options = "places:nats:tidings", "nats:tidings", ["--feed-option", f"servers={server.url}"]
            places += ["--sink-option", "stream=TIDINGS", "--sink-option", f"servers={server.url}"]
            below, own = "nats:europe", ["--sink", "places:nats:europe", "--sink-option", f"servers={server.url}"]
            own += ["--sink-option", "stream=EUROPE"]
        with PlacesJob(tmp_path / "job", CATALOG, server, ["--sink", sink, *places]) as job:
            names = {"berlin": "eu/berlin", "paris": "paris"}
            job.send("events", ({"id": id, "sql": sql, "place": names[PLACE[id]]} for id, sql in QUERIES.items()))
            until(lambda: "4 subscription events" in job.job.errors, lambda: job.job.errors)
            broker = BrokerProcess(tmp_path / "eu", feed, "eu", *options, *own)
            berlin = GatewayProcess(tmp_path / "berlin", below, "eu/berlin", *options)
            paris = GatewayProcess(tmp_path / "paris", feed, "paris", *options)
            gateways = {"berlin": berlin, "paris": paris}
            with broker, berlin, paris:
                job.send("changes", map(change, range(60)))
                check(gateways, 60, {})
                with berlin.client() as client:
                    assert create(client, "mine", "SELECT symbol FROM stocks WHERE price > 20")["place"] == "eu/berlin"
                    assert berlin.rows("mine")
                    assert client.delete("/v1/subscriptions/mine").status_code == 200
                second = run("broker", "--feed", feed, *options, "--place", "eu", "--data", str(tmp_path / "second"))
                assert second.returncode == 2 and second.stderr.count("\n") == 1, second.stderr
                assert "already" in second.stderr or "another run" in second.stderr
                # Whoever is killed goes on where it was.
                broker.kill()
                job.send("changes", map(change, range(60, 80)))
                job.kill()
                berlin.kill()
                broker.start()
                berlin.start()
                job.start()
                job.send("changes", map(change, range(80, 100)))
                check(gateways, 100, {})
                if way == "files":
                    # Folders that are lost: with NATS, and in tests/pipeline/edge/test_live_places.py.
                    return
                # A gateway that has lost everything gets it from its broker; a broker, from the job.
                berlin.stop()
                shutil.rmtree(berlin.data)
                berlin.start()
                check(gateways, 100, {"berlin": 100})
                broker.kill()
                shutil.rmtree(broker.data)
                job.send("changes", map(change, range(100, 120)))
                broker.start()
                job.send("changes", map(change, range(120, 140)))
                check(gateways, 140, {"berlin": 100})
        mistaken = run(
            "gateway", "--feed", feed, *options, "--place", "eu", "--data", str(tmp_path / "no"), "--no-auth"
        )
        assert mistaken.returncode == 2 and "tidings broker" in mistaken.stderr and "Traceback" not in mistaken.stderr
        mistaken = run("broker", "--feed", feed, *options, "--place", "paris", "--data", str(tmp_path / "none"))
        assert mistaken.returncode == 2 and "is a gateway" in mistaken.stderr and "Traceback" not in mistaken.stderr


def test_what_is_wrong_with_a_broker_is_said_in_a_line(tmp_path: Path) -> None:
    feed = f"files:{tmp_path}"
    for words, said in [
        (("--sink", "nats:europe"), "places:nats:PREFIX"),
        (("--sink", "places:files:below", "--sink-option", "places=a,b"), "the job's"),
        (("--sink", f"places:{feed}"), "leave --sink away"),
        (("--sink-option", "keep=1h"), "another --sink"),
        (("--sink", f"places:{feed}/below", "--sink-option", "kept=1h"), "no option 'kept'"),
    ]:
        found = run("broker", "--feed", feed, "--place", "eu", "--data", str(tmp_path / "data"), *words)
        assert found.returncode == 2 and said in found.stderr and found.stderr.count("\n") == 1, found.stderr
