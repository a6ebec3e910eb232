"""Flags and inboxes of connections behave as asyncio's events and queues do."""

from __future__ import annotations

import asyncio

from tidings.server.waiting import Flag, Inbox


async def turn() -> None:
    """Lets all others run once."""
    loop = asyncio.get_running_loop()
    future = loop.create_future()
    loop.call_soon(future.set_result, None)
    await future


def test_a_flag_wakes_all_who_wait_also_if_it_is_cleared_at_once() -> None:
    async def run() -> list[int]:
        flag, woken = Flag(), []

        async def wait(number: int) -> None:
            await flag.wait()
            woken.append(number)

        tasks = [asyncio.create_task(wait(number)) for number in range(3)]
        await turn()
        tasks[1].cancel()
        await turn()
        flag.set()
        flag.clear()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert not flag.is_set()
        flag.set()
        await asyncio.wait_for(flag.wait(), 1)
        return woken

    assert asyncio.run(run()) == [0, 2]


def test_an_inbox_gives_messages_in_order() -> None:
    async def run() -> list[object]:
        inbox = Inbox()

        async def fill() -> None:
            for number in range(3):
                inbox.put_nowait({"number": number})
                if number:
                    await turn()

        task = asyncio.create_task(fill())
        found = [(await inbox.get())["number"] for _ in range(3)]
        await task
        assert inbox.empty()
        return found

    assert asyncio.run(run()) == [0, 1, 2]
