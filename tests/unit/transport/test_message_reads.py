"""Requests arrive in bounded time and number; one caller's stalled ones do not stop another's."""

from __future__ import annotations

import asyncio
from typing import Any

from quorum.transport.message_reads import READS_MAX, MessageLateError, MessageReads
from tests.support.peer_harness import run


class Arriving:
    """A call whose message arrives when the test releases it."""

    def __init__(self) -> None:
        self.message: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

    async def read(self) -> bytes:
        return await self.message


async def settled() -> None:
    """Every task that can go on has done so."""
    for _ in range(5):
        await asyncio.sleep(0)


def stalled(reads: MessageReads, caller: str, count: int) -> list[asyncio.Task[Any]]:
    return [asyncio.ensure_future(reads.read(Arriving(), caller)) for _ in range(count)]


def test_stalled_messages_are_few_and_another_caller_reads_on() -> None:
    async def scenario() -> None:
        reads = MessageReads("messages")
        attack = stalled(reads, "attacker", 1000)
        await settled()
        assert reads.places.open_count <= READS_MAX // 2 + 1
        for _ in range(100):
            honest = Arriving()
            honest.message.set_result(b"x")
            assert await reads.read(honest, "honest") == b"x"
        for task in attack:
            task.cancel()
        await asyncio.gather(*attack, return_exceptions=True)
        assert reads.places.open_count == 0

    run(scenario())


def test_a_message_that_does_not_arrive_frees_its_slot() -> None:
    async def scenario() -> None:
        reads = MessageReads("messages", seconds=0.05)
        outcomes = await asyncio.gather(*stalled(reads, "a", 100), return_exceptions=True)
        assert {type(each) for each in outcomes} == {MessageLateError}
        assert reads.places.open_count == 0
        assert reads.places.refused == 100

    run(scenario())


def test_who_waits_gets_a_place_when_one_is_free() -> None:
    async def scenario() -> None:
        reads = MessageReads("messages")
        calls = [Arriving() for _ in range(READS_MAX)]
        tasks = [asyncio.ensure_future(reads.read(call, "a")) for call in calls]
        await settled()
        for number, call in enumerate(calls):
            call.message.set_result(bytes([number]))
        assert await asyncio.gather(*tasks) == [bytes([number]) for number in range(READS_MAX)]
        assert reads.places.open_count == 0

    run(scenario())


def test_a_place_given_to_a_cancelled_call_goes_to_the_next_that_waits() -> None:
    """The place is given and the call cancelled before the call takes its turn."""

    async def scenario() -> None:
        reads = MessageReads("messages")
        calls = [Arriving() for _ in range(READS_MAX // 2 + 1)]
        tasks = [asyncio.ensure_future(reads.read(call, "a")) for call in calls]
        await settled()
        held = reads.places.open_count
        waiting = stalled(reads, "a", 2)
        await settled()
        assert reads.places.open_count == held
        tasks[0].add_done_callback(lambda _: waiting[0].cancel())
        calls[0].message.set_result(b"x")
        await settled()
        assert waiting[0].cancelled()
        assert reads.places.open_count == held
        for task in (*tasks, *waiting):
            task.cancel()
        await asyncio.gather(*tasks, *waiting, return_exceptions=True)
        assert reads.places.open_count == 0

    run(scenario())
