"""Passes on the loop's thread: when, in which order, and what a slow or failed one changes."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import cast

import pytest

from quorum.core.contract.output import Append, Effect, StoreHighWatermark
from quorum.errors import QuorumUsageError, StorageError
from quorum.runtime.clock import SystemClock
from quorum.runtime.inline_writer import INLINE_BYTES_MAX, InlineWriter
from quorum.runtime.persistence import Persistence
from quorum.runtime.ports import WriteDone, WriteGroup
from quorum.runtime.sync_speed import SYNCS, SyncSpeed

BOUND_MS = 2.0
STALL_MS = 20


@dataclass
class Disk:
    """A fake ``Persistence``: notes each pass and its thread, and takes the time it is given."""

    sync_seconds: float = 0.0
    failure: BaseException | None = None
    passes: list[tuple[list[int], bool]] = field(default_factory=list)
    """Tickets, and whether the loop's thread ran the pass."""
    hold: Callable[[], None] | None = None
    users: int = 0

    def execute(self, groups: Sequence[WriteGroup]) -> WriteDone:
        self.users += 1
        assert self.users == 1, "one thread at a time"
        is_inline = threading.current_thread() is threading.main_thread()
        self.passes.append(([group.ticket for group in groups], is_inline))
        if self.hold is not None:
            self.hold()
        self.users -= 1
        if self.failure is not None:
            raise self.failure
        return WriteDone(groups[-1].ticket, (), flushed=True, sync_seconds=self.sync_seconds)


@dataclass
class World:
    disk: Disk
    bound_ms: float = BOUND_MS
    ticket: int = 0
    done: list[WriteDone] = field(default_factory=list)
    failures: list[BaseException] = field(default_factory=list)
    stalls: list[int] = field(default_factory=list)
    stalled: threading.Event = field(default_factory=threading.Event)

    def make(self) -> InlineWriter:
        return InlineWriter(
            cast("Persistence", self.disk),
            SystemClock(),
            inline_sync_ms_max=self.bound_ms,
            stall_ms=STALL_MS,
            on_done=self.done.append,
            on_failure=self.failures.append,
            on_stall=self.on_stall,
        )

    def on_stall(self, waited_ms: int) -> None:
        self.stalls.append(waited_ms)
        self.stalled.set()

    def group(self, size: int = 100, *others: Effect) -> WriteGroup:
        self.ticket += 1
        append = Append(self.ticket, self.ticket + 1, 1, bytes(size))
        return WriteGroup(self.ticket, (append, *others))

    async def write(self, writer: InlineWriter) -> None:
        """Write one small group, and wait for its completion."""
        group = self.group()
        writer.submit(group)
        await self.reached(group.ticket)

    async def reached(self, ticket: int) -> None:
        while not (self.done and self.done[-1].ticket >= ticket):
            await asyncio.sleep(0)

    async def warm(self, writer: InlineWriter) -> None:
        """Make the disk known as fast."""
        for _ in range(SYNCS):
            await self.write(writer)
        assert not any(done.is_inline for done in self.done)


def run(world: World, scenario: Callable[[InlineWriter], Awaitable[None]]) -> None:
    async def live() -> None:
        writer = world.make()
        await asyncio.wait_for(scenario(writer), 60)
        await asyncio.sleep(0)

    asyncio.run(live())


def test_a_disk_is_fast_after_a_hundred_fast_syncs_and_slow_after_one_slow_sync() -> None:
    speed = SyncSpeed(BOUND_MS)
    for _ in range(SYNCS - 1):
        speed.note(BOUND_MS / 1000)
    assert not speed.is_fast
    speed.note(BOUND_MS / 1000)
    assert speed.is_fast
    speed.note(BOUND_MS / 1000 + 1e-6)
    assert not speed.is_fast
    never = SyncSpeed(0)
    for _ in range(2 * SYNCS):
        never.note(0.0)
    assert not never.is_fast


def test_small_passes_move_to_the_loop_once_the_disk_is_known_as_fast() -> None:
    world = World(Disk())

    async def scenario(writer: InlineWriter) -> None:
        writer.start()
        await world.warm(writer)
        before = len(world.done)
        first, second = world.group(), world.group()
        writer.submit(first)
        writer.submit(second)
        assert len(world.done) == before, "not inside submit"
        await asyncio.sleep(0)
        # One turn: no thread takes part.
        assert [(done.ticket, done.is_inline) for done in world.done[before:]] == [
            (second.ticket, True)
        ]
        assert world.disk.passes[-1] == ([first.ticket, second.ticket], True)
        assert writer.stop(60)

    run(world, scenario)


def test_with_a_bound_of_zero_every_pass_is_the_threads() -> None:
    world = World(Disk(), bound_ms=0)

    async def scenario(writer: InlineWriter) -> None:
        writer.start()
        await world.warm(writer)
        await world.write(writer)
        assert writer.stop(60)

    run(world, scenario)
    assert not any(is_inline for _, is_inline in world.disk.passes)


def test_a_slow_sync_on_the_loop_sends_the_passes_back_to_the_thread() -> None:
    world = World(Disk())

    async def scenario(writer: InlineWriter) -> None:
        writer.start()
        await world.warm(writer)
        world.disk.sync_seconds = BOUND_MS / 1000 * 2
        await world.write(writer)
        assert world.done[-1].is_inline
        world.disk.sync_seconds = 0.0
        world.done.clear()
        await world.warm(writer)
        await world.write(writer)
        assert world.done[-1].is_inline
        assert writer.stop(60)

    run(world, scenario)


@pytest.mark.parametrize("kind", ["large", "other effect"])
def test_large_and_other_groups_go_to_the_thread_behind_what_is_due(kind: str) -> None:
    """Goal: the order of passes. Method: small groups before and after one for the thread."""
    world = World(Disk())

    async def scenario(writer: InlineWriter) -> None:
        writer.start()
        await world.warm(writer)
        first = world.group()
        other = (
            world.group(INLINE_BYTES_MAX + 1) if kind == "large"
            else world.group(100, StoreHighWatermark(1))
        )  # fmt: skip
        last = world.group()
        for group in (first, other, last):
            writer.submit(group)
        await world.reached(last.ticket)
        written = [pair for pair in world.disk.passes if pair[0][-1] > SYNCS]
        assert [ticket for tickets, _ in written for ticket in tickets] == [
            first.ticket, other.ticket, last.ticket,
        ]  # fmt: skip
        assert not any(is_inline for _, is_inline in written)
        await world.write(writer)
        assert world.done[-1].is_inline, "the thread is done"
        assert writer.stop(60)

    run(world, scenario)


def test_nothing_runs_on_the_loop_while_the_thread_writes() -> None:
    """Goal: one user of the directory, and completions in order. Method: the disk holds the thread
    while small groups follow.
    """
    world = World(Disk())
    released, is_held = threading.Event(), threading.Event()

    def hold() -> None:
        is_held.set()
        assert released.wait(60)

    async def scenario(writer: InlineWriter) -> None:
        writer.start()
        await world.warm(writer)
        world.disk.hold = hold
        writer.submit(world.group(INLINE_BYTES_MAX + 1))
        assert await asyncio.to_thread(is_held.wait, 60)
        writer.submit(world.group())
        for _ in range(10):
            await asyncio.sleep(0)
        assert len(world.done) == SYNCS
        released.set()
        await world.reached(world.ticket)
        tickets = [done.ticket for done in world.done]
        assert tickets == sorted(tickets)
        assert not world.done[-1].is_inline
        assert writer.stop(60)

    run(world, scenario)


@pytest.mark.parametrize("failure", [StorageError("cannot sync"), QuorumUsageError("no end")])
def test_nothing_is_written_after_a_failed_pass_on_the_loop(failure: Exception) -> None:
    world = World(Disk())

    async def scenario(writer: InlineWriter) -> None:
        writer.start()
        await world.warm(writer)
        world.disk.failure = failure
        writer.submit(world.group())
        await asyncio.sleep(0)
        assert world.failures == [failure]
        assert writer.failure is failure
        world.disk.failure = None
        count = len(world.disk.passes)
        writer.submit(world.group())
        writer.submit(world.group(INLINE_BYTES_MAX + 1))
        await asyncio.sleep(0)
        assert not writer.stop(60)
        assert len(world.disk.passes) == count
        assert len(world.done) == SYNCS

    run(world, scenario)


def test_what_is_due_is_written_by_the_stop_and_dropped_by_abandon() -> None:
    for is_abandoned in (False, True):
        world = World(Disk())

        async def scenario(
            writer: InlineWriter, world: World = world, is_abandoned: bool = is_abandoned
        ) -> None:
            writer.start()
            await world.warm(writer)
            writer.submit(world.group())
            if is_abandoned:
                writer.abandon()
            assert writer.stop(60) is not is_abandoned
            await asyncio.sleep(0)

        run(world, scenario)
        assert (world.disk.passes[-1] == ([SYNCS + 1], False)) is not is_abandoned
        assert len(world.disk.passes) == SYNCS + (not is_abandoned)


def test_a_pass_that_blocks_the_loop_is_reported_by_the_thread_once() -> None:
    """Goal: a trace of a hung disk although the loop is blocked. Method: the pass itself waits for
    the report.
    """
    world = World(Disk())

    def hold() -> None:
        assert world.stalled.wait(60)
        writers[0]._look()

    writers: list[InlineWriter] = []

    async def scenario(writer: InlineWriter) -> None:
        writers.append(writer)
        writer.start()
        await world.warm(writer)
        world.disk.hold = hold
        await world.write(writer)
        assert world.done[-1].is_inline
        world.disk.hold = None
        await world.write(writer)
        assert writer.stop(60)

    run(world, scenario)
    assert len(world.stalls) == 1
    assert world.stalls[0] >= STALL_MS
