"""`tidings gateway` and a job with gateways as people run them: real processes, a real NATS server, and folders."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from live_job import expected, view
from nats_server import nats_server
from place_processes import GatewayProcess, PlacesJob, until
from service_process import CATALOG, create, stock

QUERIES = {
    "cheap": "SELECT symbol, price FROM stocks WHERE price < 40",
    "best": "SELECT symbol, price FROM stocks ORDER BY price LIMIT 3",
    "moved": "SELECT symbol, price FROM stocks WHERE moved(price) >= 5",
    "rated": "SELECT * FROM stocks JOIN reviews USING (symbol) WHERE stocks.price >= 10 AND reviews.rating >= 5",
}
PLACE = {"cheap": "berlin", "best": "berlin", "moved": "paris", "rated": "paris"}


def change(number: int) -> dict[str, Any]:
    symbol = f"S{number % 7}"
    if number % 4 == 3:
        row = {"id": number % 11, "symbol": symbol, "rating": float(number % 10), "report": ""}
        return {"table": "reviews", "op": "upsert", "row": row}
    return stock(symbol, number * 7.0 % 80)


def contents(told: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """What was told after the last snapshot."""
    begin = max((number for number, each in enumerate(told, 1) if each["snapshot"]), default=0)
    return [each["changes"] for each in told[begin:]]


def check(gateways: dict[str, GatewayProcess], changes: int, after: dict[str, int]) -> None:
    """What every gateway has told is the end of what one engine tells; whole, where nothing was lost."""
    wanted = expected(CATALOG, QUERIES, dict.fromkeys(QUERIES, 1), map(change, range(changes)))
    for id, place in PLACE.items():
        lines = [json.loads(line) for line in wanted[id]]
        rows = view(lines)

        def is_there(id: str = id, place: str = place, rows: Any = rows) -> bool:
            found = gateways[place].rows(id)
            return found is not None and view([{"snapshot": True, "changes": _inserts(found)}]) == rows

        until(
            is_there,
            lambda id=id, place=place, rows=rows: (
                f"{id} at {place}: {gateways[place].rows(id)} is not {rows}; {gateways[place].log()}"
            ),
        )
        told = gateways[place].told(id)
        seqs = [each["seq"] for each in told]
        assert seqs == sorted(set(seqs)), f"{id} was told twice: {seqs}"
        own = contents(told)
        assert own == contents(lines)[len(contents(lines)) - len(own) :]
        if place not in after:
            assert len(own) == len(contents(lines))


def _inserts(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{"op": "insert", "row": row} for row in rows]


def sink_of(way: str, folder: Path, url: str, *options: str) -> tuple[list[str], str, list[str]]:
    """(sink of the job, feed of gateways, its options)."""
    words = [word for option in ("places=berlin,paris", *options) for word in ("--sink-option", option)]
    if way == "files":
        return ["--sink", f"places:files:{folder / 'parcels'}", *words], f"files:{folder / 'parcels'}", []
    words += ["--sink-option", "stream=TIDINGS", "--sink-option", f"servers={url}"]
    return ["--sink", "places:nats:tidings", *words], "nats:tidings", ["--feed-option", f"servers={url}"]


@pytest.mark.parametrize(
    "way, receive", [("nats", "rows"), pytest.param("files", "notices", marks=pytest.mark.extended)]
)
def test_gateways_tell_what_one_engine_tells(tmp_path: Path, way: str, receive: str) -> None:
    with nats_server(tmp_path / "jetstream") as server:
        sink, feed, options = sink_of(way, tmp_path, server.url, f"receive={receive}")
        with PlacesJob(tmp_path / "job", CATALOG, server, sink) as job:
            job.send("events", ({"id": id, "sql": sql, "place": PLACE[id]} for id, sql in QUERIES.items()))
            until(lambda: "4 subscription events" in job.job.errors, lambda: job.job.errors)
            gateways = {
                place: GatewayProcess(tmp_path / place, feed, place, *options, "--receive", receive)
                for place in ("berlin", "paris")
            }
            berlin, paris = gateways.values()
            with berlin, paris:
                job.send("changes", map(change, range(60)))
                check(gateways, 60, {})
                _create_and_drop(berlin)
                _refused(tmp_path, feed, options)
                # Whoever is killed goes on where it was.
                job.kill()
                berlin.kill_engine()
                paris.kill()
                job.send("changes", map(change, range(60, 90)))
                job.start()
                job.send("changes", map(change, range(90, 100)))
                until(lambda: berlin.passed() > 100, berlin.log)
                paris.start()
                check(gateways, 100, {})
                # A gateway whose folder is lost asks for everything, also for what drift was last told.
                paris.stop()
                shutil.rmtree(paris.data)
                job.send("changes", map(change, range(100, 110)))
                paris.start()
                check(gateways, 110, {"paris": 100})
                job.send("changes", map(change, range(110, 140)))
                check(gateways, 140, {"paris": 100})


def _create_and_drop(gateway: GatewayProcess) -> None:
    """Subscriptions of a gateway's clients are created at the job."""
    with gateway.client() as client:
        found = create(client, "mine", "SELECT symbol FROM stocks WHERE price > 20", metadata={"of": "me"})
        assert found["state"] == "active" and found["place"] == "berlin"
        assert gateway.rows("mine")
        assert client.get("/v1/subscriptions/mine").json()["metadata"] == {"of": "me"}
        other = client.post("/v1/subscriptions", json={"id": "no", "sql": QUERIES["cheap"], "place": "paris"})
        assert other.status_code == 400 and "berlin" in other.text
        assert client.post("/v1/changes", content=b"{}").status_code == 405
        assert client.delete("/v1/subscriptions/mine").status_code == 200
        assert client.get("/v1/subscriptions/mine").status_code == 404
        listed = client.get("/v1/subscriptions").json()["subscriptions"]
        assert sorted(each["id"] for each in listed) == ["best", "cheap"]
        assert [table["name"] for table in client.get("/v1/catalog").json()["tables"]] == ["stocks", "reviews"]


def _refused(folder: Path, feed: str, options: list[str]) -> None:
    """A second gateway of a name, and one that is no place of the job."""
    command = [sys.executable, "-m", "tidings.cli.main", "gateway", "--feed", feed, *options, "--no-auth"]
    done = subprocess.run(
        [*command, "--listen", "127.0.0.1:0", "--place", "berlin", "--data", str(folder / "second")],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 2 and "Traceback" not in done.stderr
    assert "already" in done.stderr or "another run" in done.stderr
