"""The queue of one stream: order, bounds and its orderly end."""

from __future__ import annotations

import asyncio

import pytest

from quorum.transport import outbox as outbox_module
from quorum.transport.counters import TransportCounters
from quorum.transport.outbox import Outbox
from tests.support.peer_harness import run


class Wire:
    """Writes that finish when the test releases them."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.begun: list[bytes] = []
        self.under_way = 0
        self.is_open = asyncio.Event()
        self.is_open.set()
        self.failure: BaseException | None = None

    async def write(self, frame: bytes) -> None:
        assert self.under_way == 0, "two writes at a time"
        self.under_way += 1
        self.begun.append(frame)
        await self.is_open.wait()
        await asyncio.sleep(0)
        self.under_way -= 1
        if self.failure is not None:
            raise self.failure
        self.sent.append(frame)


def silent_replicas(problem: str) -> None:
    """Nothing is dropped in this test."""
    raise AssertionError(problem)


async def settle() -> None:
    """Let every task that can run do so."""
    for _ in range(20):
        await asyncio.sleep(0)


def test_frames_leave_in_order_one_write_at_a_time() -> None:
    """Pushed while idle, while a write is stuck, and behind others."""

    async def scenario() -> None:
        wire = Wire()
        box = Outbox(wire.write, TransportCounters(), silent_replicas)
        box.push(b"0")
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

    run(scenario())


def test_a_frame_that_finds_no_write_under_way_is_written_at_once() -> None:
    """The pushing task writes the frame before it continues."""

    async def scenario() -> None:
        wire = Wire()
        box = Outbox(wire.write, TransportCounters(), silent_replicas)
        box.push(b"1")
        assert wire.begun == [b"1"]

    run(scenario())


def test_the_queue_is_bounded_in_frames_and_bytes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever does not fit is refused and counted; room comes back when frames leave."""
    monkeypatch.setattr(outbox_module, "OUTBOX_FRAMES_MAX", 3)
    monkeypatch.setattr(outbox_module, "OUTBOX_BYTES_MAX", 100)
    monkeypatch.setattr(outbox_module, "MESSAGE_BYTES_MAX", 90)

    async def scenario() -> None:
        wire, counters = Wire(), TransportCounters()
        lines: list[str] = []
        box = Outbox(wire.write, counters, lines.append)
        wire.is_open.clear()
        assert box.push(b"0")
        assert not box.push(bytes(91))
        assert box.push(bytes(80))
        assert not box.push(bytes(21))
        assert box.push(b"2")
        assert box.push(b"3")
        assert not box.push(b"4")
        assert counters.outbox_dropped == 3
        assert [each.split()[0] for each in lines] == ["a", "frames", "frames"]
        assert "91 bytes" in lines[0]
        wire.is_open.set()
        await settle()
        assert box.push(bytes(80))
        await settle()
        assert (counters.frames_sent, counters.bytes_sent) == (5, 163)

    run(scenario())


@pytest.mark.parametrize("waiting", [(), (b"1",), (b"1", b"2")])
def test_finish_writes_everything_and_the_end_of_the_stream(waiting: tuple[bytes, ...]) -> None:
    """Alone, behind a write that is under way, and behind what waits for it."""

    async def scenario() -> None:
        wire = Wire()
        box = Outbox(wire.write, TransportCounters(), silent_replicas)
        wire.is_open.clear()
        for frame in waiting:
            box.push(frame)
        finishing = asyncio.create_task(box.finish(b"bye"))
        await settle()
        assert not finishing.done()
        wire.is_open.set()
        await finishing
        assert wire.sent == [*waiting, b"bye"]

    run(scenario())


def test_closing_drops_what_waits() -> None:
    """Close during a blocked write: the write may end, nothing follows it, no task waits."""

    async def scenario() -> None:
        wire = Wire()
        box = Outbox(wire.write, TransportCounters(), silent_replicas)
        wire.is_open.clear()
        box.push(b"1")
        box.push(b"2")
        finishing = asyncio.create_task(box.finish(b"bye"))
        await settle()
        box.close()
        await finishing
        wire.is_open.set()
        assert box.push(b"3")
        await settle()
        assert wire.begun == wire.sent == [b"1"]

    run(scenario())


@pytest.mark.parametrize("failure", [RuntimeError("gone"), asyncio.CancelledError()])
def test_a_write_that_fails_is_the_last(failure: BaseException) -> None:
    """Its exception is not raised elsewhere, and a task that waits for the end continues."""

    async def scenario() -> None:
        wire = Wire()
        wire.failure = failure
        box = Outbox(wire.write, TransportCounters(), silent_replicas)
        box.push(b"1")
        box.push(b"2")
        await box.finish(b"bye")
        box.push(b"3")
        await settle()
        assert wire.begun == [b"1"]

    run(scenario())


@pytest.mark.parametrize(
    "failure", [asyncio.InvalidStateError("the call has ended"), asyncio.CancelledError()]
)
def test_a_write_that_fails_at_once_is_the_last(failure: BaseException) -> None:
    """As one that fails later, and ``push`` does not raise."""

    async def scenario() -> None:
        begun: list[bytes] = []

        async def refuse(frame: bytes) -> None:
            begun.append(frame)
            raise failure

        box = Outbox(refuse, TransportCounters(), silent_replicas)
        assert box.push(b"1")
        assert box.push(b"2")
        await box.finish(b"bye")
        assert begun == [b"1"]

    run(scenario())
