"""Webhook deliveries over real sockets, from a real log and registry: order, tries, dead letters, and restarts."""

import asyncio
import json
import time
from contextlib import asynccontextmanager, suppress

import numpy as np
import pyarrow as pa
from aiohttp import web
from standardwebhooks import Webhook

from tidings.model.notification import NotificationBatch, insert_change, snapshot_tail
from tidings.model.row_bag import RowBag
from tidings.model.text_column import TextColumn
from tidings.server.gateway.hub import Hub
from tidings.server.log.writer import LogWriter
from tidings.server.registry import Registry, Subscription, Target
from tidings.server.webhooks import Webhooks

SECRET, OLD = ("whsec_" + sign * 43 + "=" for sign in "Ag")


class Receiver:
    """Verifies and keeps every request, and answers as `answer` says."""

    def __init__(self):
        self.requests, self.answer = [], lambda request: web.Response()
        self._news = asyncio.Condition()

    async def handle(self, request):
        body = await request.read()
        content = Webhook(SECRET).verify(body, dict(request.headers))
        async with self._news:
            self.requests.append((request, content))
            self._news.notify_all()
        return self.answer(request)

    async def until(self, holds):
        async with asyncio.timeout(20), self._news:
            await self._news.wait_for(lambda: holds(self.requests))

    @property
    def ids(self):
        return [request.headers["webhook-id"] for request, _ in self.requests]

    @property
    def types(self):
        return [content["type"].removeprefix("tidings.") for _, content in self.requests]

    def lines(self):
        for _, content in self.requests:
            if content["type"] != "tidings.test":
                yield from content["data"].get("notifications", [content["data"]])


class World:
    def __init__(self, folder):
        self.writer = LogWriter(folder / "log")
        self.hub = Hub(folder / "log")
        self.registry = Registry.open(f"sqlite:///{folder / 'registry.db'}")
        self.seq = 0

    def subscribe(self, *names, targets=("crm",)):
        self.registry.put(
            [Subscription("t", each, "", key=["a"], state="active", targets=list(targets)) for each in names]
        )

    def tell(self, changes, ended=()):
        """One micro-batch at the next seq. changes: rows by name; a list is a snapshot."""
        self.seq += 1
        tails = [
            snapshot_tail(self.seq, [json.dumps(row) for row in rows])
            if isinstance(rows, list)
            else f', "seq": {self.seq}, "snapshot": false, "changes": [{insert_change(json.dumps(rows))}]}}'
            for rows in changes.values()
        ]
        ids = TextColumn.of(pa.array([f'"t/{name}"'.encode() for name in changes], pa.large_binary()))
        texts = TextColumn.of(pa.array([tail.encode() + b"\n" for tail in tails], pa.large_binary()))
        count = len(tails)
        is_snapshot = np.array([isinstance(rows, list) for rows in changes.values()], np.bool_)
        told = NotificationBatch(ids, np.arange(count), texts, np.full(count, self.seq), is_snapshot)
        self.writer.append(self.seq, self.seq, 0, told, [(f"t/{name}", self.seq) for name in ended])
        self.hub.refresh()

    def rows(self, name):
        return sorted(self.hub.log.view(self.hub.log.number(f"t/{name}")).rows())


def folded(receiver, name):
    """Rows as a receiver has them that skips ids, or seqs of a subscription, that it has had."""
    rows, seen = RowBag(), -1
    for line in receiver.lines():
        if line["subscription"] == name and line["seq"] > seen:
            seen = line["seq"]
            rows.fold_text(
                json.dumps({key: value for key, value in line.items() if key != "subscription"})[1:]
                .join((", ", ""))
                .encode()
            )
    return sorted(rows.rows())


@asynccontextmanager
async def receiving():
    receiver = Receiver()
    app = web.Application()
    app.router.add_post("/", receiver.handle)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    receiver.url = f"http://127.0.0.1:{site._server.sockets[0].getsockname()[1]}/"
    try:
        yield receiver
    finally:
        await runner.cleanup()


@asynccontextmanager
async def delivering(world, schedule=(0.01, 0.01), **options):
    webhooks = Webhooks(world.hub, world.registry, **{"allow_private": True, "schedule": schedule, **options})
    task = asyncio.create_task(webhooks.run())
    try:
        yield webhooks
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def run(folder, scenario, **target):
    async def main():
        world = World(folder)
        async with receiving() as receiver:
            world.registry.put_target(Target("t", "crm", target.pop("url", receiver.url), SECRET, **target))
            await scenario(world, receiver)
        world.registry.close()
        world.writer.close()

    asyncio.run(main())


def test_in_order_with_ids_and_ends(tmp_path):
    async def scenario(world, receiver):
        world.subscribe("a", "b")
        async with delivering(world) as webhooks:
            world.tell({"b": [], "a": [{"a": 1}]})
            world.tell({"b": {"a": 2}, "a": {"a": 3}})
            world.tell({}, ended=["b"])
            await receiver.until(lambda found: len(found) == 5)
            # One request at a time: when this one is answered, the one before it is settled.
            await webhooks.test("t", "crm")
            receiver.requests.pop()
        epoch = world.hub.log.epoch
        assert receiver.ids == [f"{epoch}_{each}" for each in ("a_1", "b_1", "a_2", "b_2", "b_3")]
        assert receiver.types == ["snapshot", "snapshot", "change", "change", "end"]
        assert folded(receiver, "a") == world.rows("a")
        assert world.registry.get_target("t", "crm").position == 3

    run(tmp_path, scenario)


def test_attached_later_begins_with_a_snapshot(tmp_path):
    async def scenario(world, receiver):
        world.subscribe("a", targets=())
        async with delivering(world) as webhooks:
            world.tell({"a": []})
            world.tell({"a": {"a": 1}})
            world.subscribe("a")
            webhooks.changed("t", "crm")
            await receiver.until(lambda found: len(found) == 1)
            world.tell({"a": {"a": 2}})
            await receiver.until(lambda found: len(found) >= 2)
        assert folded(receiver, "a") == world.rows("a")

    run(tmp_path, scenario, position=2)


def test_tries_then_dead_letters_then_a_snapshot(tmp_path):
    async def scenario(world, receiver):
        world.subscribe("a")
        world.tell({"a": []})
        async with delivering(world) as webhooks:
            await receiver.until(lambda found: len(found) == 1)
            receiver.answer = lambda request: web.Response(status=500 if len(receiver.requests) <= 4 else 200)
            world.tell({"a": {"a": 1}})
            await receiver.until(lambda found: len(found) == 5)
            receiver.answer = lambda request: web.Response()
            world.tell({"a": {"a": 2}})
            await receiver.until(lambda found: len(found) == 6)
            assert await webhooks.replay("t", "crm") == 1
        assert len(set(receiver.ids[1:4])) == 1
        assert receiver.types == ["snapshot", "change", "change", "change", "snapshot", "change", "change"]
        assert receiver.ids[4] not in receiver.ids[:4]
        assert receiver.ids[6] == receiver.ids[1]
        assert folded(receiver, "a") == world.rows("a")
        assert world.registry.count_dead_letters("t", "crm") == 0
        assert world.registry.get_target("t", "crm").state == "active"

    run(tmp_path, scenario)


def test_410_is_gone(tmp_path):
    async def scenario(world, receiver):
        receiver.answer = lambda request: web.Response(status=410)
        world.subscribe("a")
        world.tell({"a": []})
        async with delivering(world) as webhooks:
            await receiver.until(lambda found: len(found) == 1)
            await webhooks.test("t", "crm")
            assert webhooks.pending("t", "crm") == 1
        assert world.registry.get_target("t", "crm").state == "gone"

    run(tmp_path, scenario)


def test_redirects_are_not_followed(tmp_path):
    async def scenario(world, receiver):
        receiver.answer = lambda request: web.Response(status=307, headers={"location": receiver.url})
        async with delivering(world) as webhooks:
            attempt = await webhooks.test("t", "crm")
        assert (attempt.status, attempt.error, receiver.types) == (307, "status 307", ["test"])

    run(tmp_path, scenario)


def test_batches_restart_under_the_same_id(tmp_path):
    async def scenario(world, receiver):
        names = [f"s{number}" for number in range(25)]
        world.subscribe(*names)
        receiver.answer = lambda request: web.Response(status=200 if len(receiver.requests) <= 2 else 503)
        async with delivering(world, schedule=(3600,)):
            world.tell({name: [] for name in names})
            for number in range(5):
                world.tell({name: {"a": number} for name in names[::3]})
            await receiver.until(lambda found: len(found) == 3)
        world.tell({name: {"a": 9} for name in names})
        receiver.answer = lambda request: web.Response()
        async with delivering(world, clock=lambda: time.time() + 9):
            world.registry.update_target("t", "crm", retry_at=None)
        async with delivering(world):
            await receiver.until(lambda found: all(folded(receiver, name) == world.rows(name) for name in names))
        assert set(receiver.types) == {"batch"}
        contents = {}
        for id, (_, content) in zip(receiver.ids, receiver.requests, strict=True):
            assert contents.setdefault(id, content["data"]) == content["data"]

    run(tmp_path, scenario, batch=4)


def test_net_changes(tmp_path):
    async def scenario(world, receiver):
        world.subscribe("a")
        async with delivering(world):
            world.tell({"a": []})
            await receiver.until(lambda found: len(found) == 1)
            for number in range(5):
                world.tell({"a": {"a": number}})
            await receiver.until(lambda found: len(found) == 2)
        assert next(line for line in receiver.lines() if line["seq"] == 6)["net_from"] == 1
        assert folded(receiver, "a") == world.rows("a")

    run(tmp_path, scenario, every_seconds=0.3)


class Loopback:
    """A resolver to which every name is this machine, as after DNS rebinding."""

    async def resolve(self, host, port=0, family=0):
        return [{"hostname": host, "host": "127.0.0.1", "port": port, "family": 2, "proto": 6, "flags": 0}]

    async def close(self):
        pass


def test_addresses_are_refused_when_connecting(tmp_path):
    async def scenario(world, receiver):
        async with delivering(world, allow_private=False, resolver=Loopback()) as webhooks:
            attempt = await webhooks.test("t", "crm")
        assert attempt.status is None
        assert "not on the public internet" in attempt.error

    run(tmp_path, scenario, url="https://example.com/")


def test_a_failing_target_does_not_delay_another_and_old_secrets_sign(tmp_path):
    async def scenario(world, receiver):
        world.registry.put_target(Target("t", "bad", "http://127.0.0.1:9/", SECRET))
        world.subscribe("a", targets=("bad", "crm"))
        async with delivering(world, schedule=(3600,)):
            world.tell({"a": []})
            world.tell({"a": {"a": 1}})
            await receiver.until(lambda found: len(found) == 2)
        assert len(receiver.requests[0][0].headers["webhook-signature"].split(" ")) == 2
        assert folded(receiver, "a") == world.rows("a")

    run(tmp_path, scenario, old_secret=OLD, old_secret_until=time.time() + 3600)
