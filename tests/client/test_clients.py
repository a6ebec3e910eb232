"""Clients against a real service: create, follow, resume, rows, errors."""

from __future__ import annotations

import asyncio
import subprocess
from pathlib import Path

import pytest

from service_process import Service, stock
from tidings.client import AsyncClient, Client
from tidings.client.errors import NotFound, ServiceError, SqlRefused


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
    async def follow() -> list[bool]:
        async with AsyncClient(service.url, service.key) as client:
            await client.create("SELECT symbol FROM stocks WHERE symbol = 'ASYNC'", id="client-b")
            found = []
            async with await client.subscribe("client-b") as changes:
                async for change in changes:
                    found.append(change.snapshot)
                    if len(found) == 2:
                        return found
                    await client.upsert("stocks", stock("ASYNC", 1.0)["row"])
            return found

    assert asyncio.run(follow()) == [True, False]


@pytest.mark.extended
def test_the_javascript_client(service: Service, tmp_path: Path) -> None:
    """Needs node."""
    source = Path(__file__).parents[2] / "src" / "tidings" / "client" / "client.js"
    (tmp_path / "client.mjs").write_text(source.read_text())
    (tmp_path / "run.mjs").write_text(
        """
import { Client } from "./client.mjs";
const client = new Client(process.argv[2], { key: process.argv[3] });
await client.create("SELECT symbol FROM stocks WHERE symbol = 'NODE'", { id: "client-js" });
const follower = client.subscribe({ id: "client-js" });
let count = 0;
for await (const change of follower) {
  console.log(JSON.stringify(change.changes));
  if (++count === 2) break;
  await client.feed([{ table: "stocks", op: "upsert", row: { symbol: "NODE", sector: "x", per: 1, risk: 1, price: 1 } }]);
}
process.exit(0);
"""
    )
    done = subprocess.run(
        ["node", "run.mjs", service.url, service.key or ""],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == '[]\n[{"op":"insert","row":{"symbol":"NODE"}}]\n', done.stderr
