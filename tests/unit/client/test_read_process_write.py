"""Read-process-write with the client library: exactly once, wherever a process dies (320.6).

Goal: no output is missing, doubled or of a former process. Method: a process is held at each step
in turn, as one that is paused or cut off; another one does all the work; then it goes on.
"""

from __future__ import annotations

import asyncio

import pytest

from quorate.client import (
    Client,
    LogPosition,
    OutcomeUnknownError,
    ProducerFencedError,
    RefusedError,
    ResetPolicy,
)
from quorum.errors import ErrorCode
from statemachine.records import ExpireProducerRecord, RemoveTransactionalIdRecord
from tests.support.served_node import serving
from tests.unit.client.test_log_consumer import value
from tests.unit.client.test_named_client import Node, setting
from tests.unit.client.test_ordered_client import values_written

GROUP = "copier"
INPUTS = 4
STEPS = 2 + 2 * INPUTS + 1
"""Take the name, read the position, then poll and write for each input; the last poll ends it."""


class CopyingNode(Node):
    """Its log is the input; what the clients write goes to the controller's log."""

    def __init__(self):
        super().__init__()
        for number in range(1, INPUTS + 1):
            self.commit(value(str(number)))

    @property
    def image(self):
        return self.bench.controller.image

    def confirm_read(self, on_outcome, _reads=1):
        on_outcome(self.image.provenance.end_offset)


class Held:
    """Lets a process do some steps, and holds it before the next one."""

    def __init__(self, steps: int) -> None:
        self.left = steps
        self.is_held = asyncio.Event()
        self.goes_on = asyncio.Event()

    async def step(self) -> None:
        self.left -= 1
        if self.left == -1:
            self.is_held.set()
            await self.goes_on.wait()


async def process(node, held: Held, *, takes_name: bool = True) -> None:
    """Copy each input that no earlier process has copied."""
    async with Client([node.address], writer=GROUP) as client:
        await held.step()
        if takes_name:
            await client.begin_epoch()
        await held.step()
        stored = (await client.fetch_positions([GROUP]))[GROUP]
        consumer = client.consumer(
            reset=ResetPolicy.NONE,
            position=stored.position if stored else LogPosition(0),
            max_bytes=1,
        )
        while True:
            await held.step()
            records = await consumer.poll(max_wait_ms=0)
            if not records:
                return
            await held.step()
            command = setting(records[-1].offset + 1)
            await client.commit_position(GROUP, consumer.position, command=command)


def output(node) -> list[str]:
    return values_written(node)


WANTED = [str(number) for number in range(1, INPUTS + 1)]


async def run(steps: int, *, takes_name: bool = True) -> tuple[list[str], str]:
    """Return the output, and how the process that was held ended."""
    node = CopyingNode()
    async with serving(node):
        held = Held(steps)
        zombie = asyncio.ensure_future(process(node, held, takes_name=takes_name))
        await held.is_held.wait()
        await process(node, Held(10**6), takes_name=takes_name)
        held.goes_on.set()
        (end,) = await asyncio.gather(zombie, return_exceptions=True)
        return output(node), type(end).__name__


@pytest.mark.parametrize("steps", range(STEPS))
def test_a_process_that_was_held_at_any_step_writes_nothing_twice(steps):
    written, end = asyncio.run(run(steps))
    assert written == WANTED
    # Only a process that has something left to write finds out that it was replaced.
    assert end == ("NoneType" if steps in (0, 1, STEPS - 1) else "ProducerFencedError")


def test_without_the_name_before_the_position_an_input_is_copied_twice():
    """The test can fail: a process reads its position, and takes the name with its first write."""
    written, _ = asyncio.run(run(2, takes_name=False))
    assert written == WANTED + WANTED


@pytest.mark.parametrize("number", range(1, INPUTS + 1))
def test_a_write_whose_answer_is_lost_with_its_process_is_not_repeated(number):
    async def scenario():
        node = CopyingNode()
        async with serving(node):
            held = Held(2 + 2 * (number - 1) + 1)
            first = asyncio.ensure_future(process(node, held))
            await held.is_held.wait()
            node.lost = 1
            held.goes_on.set()
            while node.lost:
                await asyncio.sleep(0)
            # It was applied, and the process dies before it knows.
            first.cancel()
            await asyncio.gather(first, return_exceptions=True)
            await process(node, Held(10**6))
            assert output(node) == WANTED

    asyncio.run(scenario())


@pytest.mark.parametrize("number", range(1, INPUTS + 1))
def test_a_write_that_comes_late_is_refused_with_its_position(number):
    """Goal: no zombie's write. Method: it was sent, and is evaluated behind the other process."""

    async def scenario():
        node = CopyingNode()
        async with serving(node):
            held = Held(2 + 2 * (number - 1) + 1)
            zombie = asyncio.ensure_future(process(node, held))
            await held.is_held.wait()
            node.holds = True
            held.goes_on.set()
            while not node.held:
                await asyncio.sleep(0)
            late, node.held, node.holds = node.held, [], False
            await process(node, Held(10**6))
            node.held = late
            node.release()
            (end,) = await asyncio.gather(zombie, return_exceptions=True)
            assert isinstance(end, ProducerFencedError | OutcomeUnknownError)
            assert output(node) == WANTED
            assert node.image.positions.of(GROUP).offset == INPUTS

    asyncio.run(scenario())


@pytest.mark.parametrize("writes_before", [False, True])
def test_a_process_that_wakes_after_its_name_has_expired_commits_no_position(writes_before):
    """Goal: no zombie's write, although nothing is left to fence it by. Method: expire the name."""

    async def scenario():
        node = CopyingNode()
        async with serving(node), Client([node.address], writer=GROUP) as old:
            await old.begin_epoch()
            consumer = old.consumer(position=LogPosition(0), max_bytes=1)
            await consumer.poll(max_wait_ms=0)
            await process(node, Held(10**6))
            known = node.producers.transactional_ids.get(GROUP)
            node.append(ExpireProducerRecord(known.producer_id), RemoveTransactionalIdRecord(GROUP))
            if writes_before:
                # What depends on no position goes on under another producer (360.4).
                await old.write(setting(99))
            for command in (setting(1), None, setting(1)):
                with pytest.raises(RefusedError, match="read the position again") as caught:
                    await old.commit_position(GROUP, consumer.position, command=command)
                assert caught.value.code == ErrorCode.UNKNOWN_PRODUCER_ID
            assert output(node) == WANTED + ["99"] * writes_before
            await old.begin_epoch()
            stored = (await old.fetch_positions([GROUP]))[GROUP]
            await old.commit_position(GROUP, stored.position, command=setting(7))
            assert output(node)[-1] == "7"

    asyncio.run(scenario())
