"""The queue of one stream: order, bounds and its orderly end."""

from __future__ import annotations

import asyncio

import pytest

from quorum.transport import outbox as outbox_module
from quorum.transport.counters import TransportCounters
from quorum.transport.outbox import Outbox
from tests.support.peer_harness import run


class Wire:
    """Writes that finish when told."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.under_way = 0
        self.is_open = asyncio.Event()
        self.is_open.set()

    async def write(self, frame: bytes) -> None:
        assert self.under_way == 0, "two writes at a time"
        self.under_way += 1
        await self.is_open.wait()
        self.sent.append(frame)
        self.under_way -= 1


async def settle() -> None:
    """Let every task that can run do so."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_frames_leave_in_order_one_write_at_a_time() -> None:
    """Pushed while idle, while a write is stuck, and before the task ran at all."""

    async def scenario() -> None:
        wire = Wire()
        box = Outbox(wire.write, TransportCounters())
        box.push(b"0")
        writer = asyncio.create_task(box.run())
        await settle()
        wire.is_open.clear()
        box.push(b"1")
        await settle()
        box.push(b"2")
        box.push(b"3")
        await settle()
        assert wire.sent == [b"0"]
        wire.is_open.set()
        await settle()
        box.push(b"4")
        await settle()
        assert wire.sent == [b"0", b"1", b"2", b"3", b"4"]
        box.close()
        await writer

    run(scenario())


def test_the_queue_is_bounded_in_frames_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever does not fit is refused and counted; room comes back when frames leave."""
    monkeypatch.setattr(outbox_module, "OUTBOX_FRAMES_MAX", 3)
    monkeypatch.setattr(outbox_module, "OUTBOX_BYTES_MAX", 100)
    monkeypatch.setattr(outbox_module, "MESSAGE_BYTES_MAX", 90)

    async def scenario() -> None:
        wire, counters = Wire(), TransportCounters()
        box = Outbox(wire.write, counters)
        assert not box.push(bytes(91))
        assert box.push(bytes(80))
        assert not box.push(bytes(21))
        assert box.push(b"2")
        assert box.push(b"3")
        assert not box.push(b"4")
        assert counters.outbox_dropped == 3
        writer = asyncio.create_task(box.run())
        await settle()
        assert box.push(bytes(80))
        await settle()
        assert (counters.frames_sent, counters.bytes_sent) == (4, 162)
        box.close()
        await writer

    run(scenario())


def test_finish_writes_everything_and_the_last_word() -> None:
    """Alone, and behind a write that is under way."""

    async def scenario() -> None:
        for is_busy in (False, True):
            wire = Wire()
            box = Outbox(wire.write, TransportCounters())
            writer = asyncio.create_task(box.run())
            if is_busy:
                wire.is_open.clear()
            box.push(b"1")
            if is_busy:
                await settle()
            finishing = asyncio.create_task(box.finish(b"bye"))
            await settle()
            wire.is_open.set()
            await finishing
            assert wire.sent == [b"1", b"bye"]
            box.close()
        await writer

    run(scenario())


def test_closing_ends_the_task_and_drops_what_waits() -> None:
    """Closed while a write is stuck: that write may end, nothing follows it."""

    async def scenario() -> None:
        wire = Wire()
        box = Outbox(wire.write, TransportCounters())
        writer = asyncio.create_task(box.run())
        wire.is_open.clear()
        box.push(b"1")
        box.push(b"2")
        await settle()
        box.close()
        wire.is_open.set()
        await writer
        assert wire.sent == [b"1"]

    run(scenario())
