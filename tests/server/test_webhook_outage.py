"""A target that is down while very many subscriptions lie behind it: nothing is forgotten, and nobody else waits for it."""

from __future__ import annotations

import asyncio
import json
import time

import pytest
from aiohttp import web
from test_webhook_delivery import SECRET, World, delivering, receiving

from tidings.model.row_bag import RowBag
from tidings.server.registry import Target


def folded_views(receiver) -> dict[str, list[bytes]]:
    """Rows of every subscription, as a receiver has them that skips seqs of a subscription which it has had."""
    bags: dict[str, RowBag] = {}
    seen: dict[str, int] = {}
    for told in receiver.lines():
        name, line = told["subscription"], {key: told[key] for key in told if key != "subscription"}
        if "why" in line:
            bags.pop(name, None)
        elif line["seq"] > seen.get(name, -1):
            seen[name] = line["seq"]
            bags.setdefault(name, RowBag()).fold_text(", ".join(("", json.dumps(line)[1:])).encode())
    return {name: sorted(bag.rows()) for name, bag in bags.items()}


async def more_of(receiver) -> None:
    """Waits for a further request."""
    seen = len(receiver.requests)
    await receiver.until(lambda found: len(found) > seen)


@pytest.mark.parametrize(("count", "seconds"), [(1_500, 60), pytest.param(100_000, 1_800, marks=pytest.mark.extended)])
def test_a_target_that_answers_500_with_many_subscriptions_behind_it(tmp_path, count, seconds):
    """Dead letters hold all of them; another target has its messages meanwhile; when it is up again, all views are exact. Each
    request is verified by the package `standardwebhooks`."""
    names, others = [f"s{number}" for number in range(count)], [f"o{number}" for number in range(20)]

    async def scenario() -> None:
        world = World(tmp_path)
        async with asyncio.timeout(seconds), receiving() as down, receiving() as up:
            down.answer = lambda request: web.Response(status=500)
            world.registry.put_target(Target("t", "down", down.url, SECRET))
            world.registry.put_target(Target("t", "up", up.url, SECRET))
            world.subscribe(*names, targets=("down",))
            world.subscribe(*others, targets=("up",))
            async with delivering(world, schedule=(0.05, 0.05)) as webhooks:
                world.tell({name: [{"a": number}] for number, name in enumerate(names)})
                world.tell({name: [] for name in others})
                longest = told = wanted = 0
                while (dead := world.registry.count_dead_letters("t", "down")) < count:
                    told += 1
                    wanted = (told + 1) * len(others)
                    began = time.monotonic()
                    world.tell({name: {"a": 1000 + told} for name in others})
                    await up.until(lambda found: len(found) == wanted)  # noqa: B023
                    longest = max(longest, time.monotonic() - began)
                    assert dead <= count
                    # The last of all is followed by snapshots that are owed, so there is always one more.
                    await more_of(down)
                assert told > 3 and longest < 5.0, "another target waited for the one that is down"
                target = world.registry.get_target("t", "down")
                assert (target.state, target.last_error) == ("failing", "status 500")
                letters = world.registry.page_dead_letters("t", "down", count + 1)
                assert sorted(letter.subscription for letter in letters) == sorted(names)
                # What happens meanwhile costs no further letters: a snapshot is owed anyway.
                world.tell({name: {"a": -1} for name in names[::3]})
                world.tell({}, ended=names[:5])
                down.answer = lambda request: web.Response()
                before = len(down.requests)
                while len(down.requests) < before + count - 5:
                    await more_of(down)
                # One request at a time: when this one is answered, those before it are settled.
                while webhooks.pending("t", "down"):
                    await webhooks.test("t", "down")
                assert world.registry.count_dead_letters("t", "down") == count
                after = sum(each != "test" for each in down.types[before:])
                assert count - 5 <= after <= count + count // 3 + 10
                views = folded_views(down)
                assert all(views[name] == world.rows(name) for name in names[5:])
                assert await webhooks.replay("t", "down") == count
                assert folded_views(down) == views, "letters that come late change nothing"
            assert world.registry.count_dead_letters("t", "down") == 0
            assert world.registry.get_target("t", "down").state == "active"
            views = folded_views(up)
            assert all(views[name] == world.rows(name) for name in others)
        world.registry.close()
        world.writer.close()

    asyncio.run(scenario())
