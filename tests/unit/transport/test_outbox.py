"""The queue of one stream: order, bounds, and who writes."""

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
        self.writers: list[asyncio.Task[None] | None] = []
        self.under_way = 0
        self.is_open = asyncio.Event()
        self.is_open.set()

    async def write(self, frame: bytes) -> None:
        assert self.under_way == 0, "two writes at a time"
        self.under_way += 1
        self.writers.append(asyncio.current_task())
        await self.is_open.wait()
        self.sent.append(frame)
        self.under_way -= 1


async def settle() -> None:
    """Let every task that can run do so."""
    for _ in range(10):
        await asyncio.sleep(0)


def test_frames_leave_in_order_by_whoever_is_free() -> None:
    """Pushed from outside: the task writes. Pushed while held: the reader writes at release."""

    async def scenario() -> None:
        wire = Wire()
        box = Outbox(wire.write, TransportCounters())
        writer = asyncio.create_task(box.run())
        await settle()
        box.push(b"1")
        await settle()
        box.hold()
        box.push(b"2")
        await settle()
        assert wire.sent == [b"1"]
        await box.release()
        assert wire.sent == [b"1", b"2"]
        assert wire.writers == [writer, asyncio.current_task()]
        writer.cancel()

    run(scenario())


def test_writes_never_overlap_when_reader_and_task_meet() -> None:
    """A write is stuck in the task; the reader's release must not start another."""

    async def scenario() -> None:
        wire = Wire()
        box = Outbox(wire.write, TransportCounters())
        writer = asyncio.create_task(box.run())
        wire.is_open.clear()
        box.push(b"1")
        await settle()
        box.hold()
        box.push(b"2")
        await box.release()
        box.push(b"3")
        wire.is_open.set()
        await settle()
        assert wire.sent == [b"1", b"2", b"3"]
        writer.cancel()

    run(scenario())


def test_much_is_left_to_the_task_so_that_the_reader_can_read() -> None:
    """A mebibyte of records does not keep the stream's reader."""

    async def scenario() -> None:
        wire = Wire()
        box = Outbox(wire.write, TransportCounters())
        writer = asyncio.create_task(box.run())
        await settle()
        wire.is_open.clear()
        box.hold()
        box.push(bytes(1 << 20))
        await box.release()
        wire.is_open.set()
        await settle()
        assert wire.writers == [writer]
        writer.cancel()

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
        writer.cancel()

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
            writer.cancel()

    run(scenario())
