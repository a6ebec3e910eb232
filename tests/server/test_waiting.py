"""Flags and inboxes of connections behave as asyncio's events and queues do."""

from __future__ import annotations

import asyncio

from tidings.server.waiting import Flag, Inbox


def test_a_flag_wakes_all_who_wait_also_if_it_is_cleared_at_once() -> None:
    async def run() -> list[int]:
        flag, woken = Flag(), []

        async def wait(number: int) -> None:
            await flag.wait()
            woken.append(number)

        tasks = [asyncio.create_task(wait(number)) for number in range(3)]
        await asyncio.sleep(0)
        tasks[1].cancel()
        await asyncio.sleep(0)
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
                    await asyncio.sleep(0)

        task = asyncio.create_task(fill())
        found = [(await inbox.get())["number"] for _ in range(3)]
        await task
        assert inbox.empty()
        return found

    assert asyncio.run(run()) == [0, 1, 2]
