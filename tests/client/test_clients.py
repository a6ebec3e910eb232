"""Clients against a real service: create, follow, resume after a restart, rows, errors; and `tidings watch`."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from in_process import tidings
from service_process import Service, stock
from tidings.client import AsyncClient, Client
from tidings.client.errors import NotFound, ServiceError, SqlRefused, Unreachable
from tidings.client.views import change_of_line
from tidings.model.errors import UsageError

_JAVASCRIPT = Path(__file__).parents[2] / "src" / "tidings" / "client" / "client.js"
_NODE = """
import { Client } from "./client.mjs";
const client = new Client(process.argv[2]);
const put = (symbol) =>
  client.feed([{ table: "stocks", op: "upsert", row: { symbol, sector: "x", per: 1, risk: 1, price: 1 } }]);
const lines = [];
await client.create("SELECT symbol FROM stocks WHERE sector ILIKE 'a%'").catch((error) =>
  lines.push(`${error.error} ${error.status} ${error.at.line} ${error.at.column}`));
await client.create("SELECT symbol FROM stocks", { id: "client-js" });
const view = await client.view("client-js");
const own = client.subscribe({ sql: "SELECT symbol FROM stocks" }, (change) => own.seen.push(change));
own.seen = [];
for await (const change of client.subscribe({ id: "client-js" })) {
  lines.push(JSON.stringify([change.snapshot, change.changes]));
  if (change.snapshot) await put("NODE");
  else if (change.changes[0].row.symbol === "NODE") {
    console.log("before the restart");
    await new Promise((resolve) => process.stdin.once("data", resolve));
    await put("JS");
  } else break;
}
while (view.rows.length < 2) await new Promise((resolve) => (view.onchange = resolve));
lines.push(JSON.stringify(view.rows));
await own.close();
await view.close();
await client.create("SELECT symbol FROM stocks", { id: "going" });
const going = client.subscribe({ id: "going" });
for await (const change of going) if (change.snapshot) await client.drop("going");
lines.push(`ended ${going.state.ended.get("going")}`);
console.log(lines.join("\\n"));
process.exit(0);
"""


def test_a_subscription_is_followed(service: Service) -> None:
    with Client(service.url, service.key) as client:
        made = client.create("SELECT symbol, price FROM stocks WHERE symbol = 'CLIENT'", id="client-a")
        assert made["id"] == "client-a"
        with client.subscribe("client-a") as changes:
            assert next(changes).snapshot
            client.upsert("stocks", stock("CLIENT", 5.0)["row"])
            told = next(changes)
            assert told.changes == [{"op": "insert", "row": {"symbol": "CLIENT", "price": 5.0}}]
            assert changes.view.rows == [{"symbol": "CLIENT", "price": 5.0}]
            client.drop("client-a")
            assert next(changes, None) is None
        with pytest.raises(NotFound):
            client.get("client-a")


def test_mistakes_are_explained(service: Service) -> None:
    with Client(service.url, service.key) as client:
        with pytest.raises(SqlRefused) as refused:
            client.create("SELECT symbol FROM stocks WHERE symbol ILIKE 'a%'")
        assert "ILIKE" in str(refused.value)
    with Client(service.url, "tk_nobody") as client, pytest.raises(ServiceError) as unknown:
        client.about()
    assert unknown.value.status == 401


def test_the_asynchronous_client(service: Service) -> None:
    async def follow() -> None:
        async with AsyncClient(service.url, service.key) as client:
            # A query of its own, dropped when the block ends.
            async with client.subscribe("SELECT symbol FROM stocks WHERE symbol = 'ASYNC'") as changes:
                (id,) = changes.ids
                assert (await anext(changes)).snapshot and changes.view.rows == []
                await client.upsert("stocks", stock("ASYNC", 1.0)["row"])
                assert not (await anext(changes)).snapshot
                assert changes.view.rows == [{"symbol": "ASYNC"}]
            with pytest.raises(StopAsyncIteration):
                await anext(changes)
            with pytest.raises(NotFound):
                await client.get(id)
            # A subscription that stays needs no block.
            await client.create("SELECT symbol FROM stocks WHERE symbol = 'ASYNC'", id="client-b")
            async for change in client.subscribe("client-b"):
                assert change.changes == [{"op": "insert", "row": {"symbol": "ASYNC"}}]
                break
            async with await client.view("client-b") as view:
                done = await client.delete("stocks", {"symbol": "ASYNC"})
                assert done.seq is not None
                await view.until(done.seq)
                assert view.rows == []

    asyncio.run(follow())


def test_nothing_is_asked_before_the_first_change_is_taken() -> None:
    async def follow() -> None:
        async with AsyncClient("http://127.0.0.1:1") as client:
            changes = client.subscribe("cheap", after="k7-3")
            assert changes.ids == [] and changes.position == "k7-3"
            with pytest.raises(Unreachable):
                await anext(changes)
            nothing = client.subscribe("SELECT symbol FROM stocks")
            with pytest.raises(UsageError, match="nothing is followed yet"):
                _ = nothing.view
            await nothing.close()
            assert [change async for change in nothing] == []
            with pytest.raises(UsageError, match="one query at a time"):
                client.subscribe("SELECT symbol FROM stocks", "cheap")

    asyncio.run(follow())


def test_all_clients_resume_after_a_restart(tmp_path: Path) -> None:
    """Each change once and in order, no second snapshot: in threads, in asyncio, in a live view and in `tidings watch`."""

    async def follow(service: Service) -> None:
        with Client(service.url) as client:
            client.create("SELECT symbol, price FROM stocks WHERE price < 500", id="cheap")
            words = ["watch", service.url, "--id", "cheap", "--count", "3"]
            watching = subprocess.Popen(
                [sys.executable, "-m", "tidings.cli.main", *words], stdout=subprocess.PIPE, text=True
            )
            assert watching.stdout is not None
            lines = [watching.stdout.readline()]
            async with AsyncClient(service.url) as other, other.subscribe("cheap") as theirs:
                with client.subscribe("cheap") as ours, client.view("cheap") as view:
                    told, heard = [next(ours)], [await anext(theirs)]
                    client.insert("stocks", stock("GOOG", 480.0)["row"])
                    told.append(next(ours))
                    heard.append(await anext(theirs))
                    lines.append(watching.stdout.readline())
                    assert service.stop() == 0
                    service.start()
                    done = client.update("stocks", stock("GOOG", 470.0)["row"])
                    told.append(next(ours))
                    heard.append(await anext(theirs))
                    lines += watching.communicate(timeout=30)[0].splitlines(keepends=True)
                    assert told == heard == [change_of_line(line.encode()) for line in lines]
                    assert [change.snapshot for change in told] == [True, False, False]
                    assert told[-1].seq == done.seq and watching.returncode == 0
                    view.wait_for(told[-1].seq)
                    assert view.rows == ours.view.rows == theirs.view.rows == [{"symbol": "GOOG", "price": 470.0}]

    with Service(tmp_path) as service:
        asyncio.run(follow(service))


def test_watch_prints_lines_and_leaves_nothing_behind(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TIDINGS_KEY", str(service.key))
    sql = "SELECT symbol FROM stocks WHERE symbol = 'WATCH'"
    with Client(service.url, service.key) as client:
        client.upsert("stocks", stock("WATCH", 1.0)["row"])
        done = tidings(tmp_path, "watch", service.url, "--sql", sql, "--count", "1")
        assert done.returncode == 0, done.stderr
        told = change_of_line(done.stdout.encode())
        assert told.snapshot and told.changes == [{"op": "insert", "row": {"symbol": "WATCH"}}]
        assert [each["id"] for each in client.list() if each["sql"] == sql] == []


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("--id", "nobody"), 2, "error: there is no subscription 'nobody'"),
        (("--sql", "SELECT symbol FROM bonds"), 2, "bonds"),
        (("--id", "a", "--sql", "b"), 2, "error: write --id or --sql, one of them"),
        ((), 2, "error: write --id or --sql, one of them"),
        (("--id", "a", "--key", "tk_nobody"), 2, "error: "),
    ],
)
def test_watch_says_what_is_wrong(
    service: Service, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, words: tuple[str, ...], code: int, said: str
) -> None:
    monkeypatch.setenv("TIDINGS_KEY", str(service.key))
    done = tidings(tmp_path, "watch", service.url, *words)
    assert (done.returncode, done.stdout) == (code, "")
    assert said in done.stderr


def test_watch_fails_where_nobody_listens(tmp_path: Path) -> None:
    done = tidings(tmp_path, "watch", "http://127.0.0.1:1", "--id", "a")
    assert done.returncode == 1 and done.stderr.startswith("failed: no answer from http://127.0.0.1:1")


def test_the_javascript_client_is_one_short_file() -> None:
    text = _JAVASCRIPT.read_text()
    assert len(text.splitlines()) <= 420 and "import " not in text.partition("*/")[2]


@pytest.mark.extended
def test_the_javascript_client(tmp_path: Path) -> None:
    """Needs node. Follows a subscription, a query of its own and a view, across a restart."""
    (tmp_path / "client.mjs").write_text(_JAVASCRIPT.read_text())
    (tmp_path / "run.mjs").write_text(_NODE)
    with Service(tmp_path) as service:
        words = ["node", "run.mjs", service.url]
        with subprocess.Popen(
            words, cwd=tmp_path, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as node:
            assert node.stdin is not None and node.stdout is not None and node.stderr is not None
            line = node.stdout.readline()
            assert line == "before the restart\n", node.stderr.read()
            service.stop()
            service.start()
            said, error = node.communicate("go on\n", timeout=60)
        with Client(service.url) as client:
            assert [each["id"] for each in client.list()] == ["client-js"]
    assert said.splitlines() == [
        "sql_refused 422 1 40",
        "[true,[]]",
        '[false,[{"op":"insert","row":{"symbol":"NODE"}}]]',
        '[false,[{"op":"insert","row":{"symbol":"JS"}}]]',
        '[{"symbol":"NODE"},{"symbol":"JS"}]',
        "ended dropped",
    ], error
