"""The node's writer: passes on the writer thread, and small ones on the event loop's thread.

A pass on the thread costs two changes of threads and waits for the interpreter's lock. If the disk
is fast, its sync is shorter than that. A pass runs on the loop's thread if the thread has nothing
to do, the groups are small appends, and the latest syncs were fast (``sync_speed``, ADR 77).

Invariants:
    1. Passes keep the order of ``submit``, and completions are reported in that order.
    2. ``Persistence`` is used by one thread at a time: the loop uses it only after the completion
       of everything that the thread was given.
    3. After a failed pass no other begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from quorum.core.contract.output import Append
from quorum.ports import Clock
from quorum.runtime.persistence import Persistence
from quorum.runtime.ports import WriteDone, WriteGroup
from quorum.runtime.sync_speed import SyncSpeed
from quorum.runtime.writer import WriterThread
from quorum.values import copier

INLINE_BYTES_MAX = 16 << 10
"""Bytes of one pass on the loop's thread. Larger ones come with load, and then a pass on the thread
overlaps with the work of the loop."""

_with_is_inline = copier(WriteDone, "is_inline")


class InlineWriter:
    """Runs ``Persistence`` on its own thread, or on the loop's. Owned by one event loop.

    ``on_done`` and ``on_failure`` are called on the loop's thread, never inside ``submit``.
    """

    def __init__(
        self,
        persistence: Persistence,
        clock: Clock,
        *,
        inline_sync_ms_max: float,
        stall_ms: int,
        on_done: Callable[[WriteDone], None],
        on_failure: Callable[[BaseException], None],
        on_stall: Callable[[int], None],
    ) -> None:
        """``on_stall`` gets how many milliseconds a pass on the loop's thread has taken, once it is
        ``stall_ms`` or more: on the writer thread, because the loop is blocked.
        """
        self._persistence = persistence
        self._clock = clock
        self._loop = asyncio.get_running_loop()
        self._on_done = on_done
        self._on_failure = on_failure
        self._on_stall = on_stall
        self._stall_ms = stall_ms
        self._speed = SyncSpeed(inline_sync_ms_max)
        is_watching = inline_sync_ms_max > 0
        self._writer_thread = WriterThread(
            persistence,
            on_done=partial(self._from_thread, self._thread_done),
            on_failure=partial(self._from_thread, on_failure),
            on_idle=self._look if is_watching else None,
            idle_s=stall_ms / 2000 if is_watching else None,
        )
        self._given_ticket = self._written_ticket = 0
        """Last ticket that the thread was given, and the last that it has completed."""
        self._due: list[WriteGroup] = []
        """Groups of the pass that this turn of the loop is followed by."""
        self._due_bytes = 0
        self._is_started = self._is_abandoned = False
        self._failure: BaseException | None = None
        self._began_ms: int | None = None
        """Start of the pass that the loop runs."""
        self._is_reported = False

    # ------------------------------------------------------------------ life-cycle

    def start(self) -> None:
        """Start the thread."""
        self._is_started = True
        self._writer_thread.start()

    def abandon(self) -> None:
        """Begin no further pass: queued groups are dropped and never completed."""
        self._is_abandoned = True
        self._writer_thread.abandon()

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive: after ``stop``, whether a hung disk blocks it."""
        return self._writer_thread.is_running

    @property
    def failure(self) -> BaseException | None:
        """Exception that ended all writing."""
        return self._failure or self._writer_thread.failure

    def stop(self, timeout_s: float | None = None) -> bool:
        """Write queued groups and end the thread; return whether all was written in time.

        False if the disk hangs, after a failure, or after ``abandon``.
        """
        self._is_started = False
        self._give_due()
        return self._writer_thread.stop(timeout_s)

    # ------------------------------------------------------------------ passes

    def submit(self, group: WriteGroup) -> None:
        """Queue a group for the next pass."""
        size = _inline_bytes(group) if self._due or self._is_inline_now else None
        if size is None or self._due_bytes + size > INLINE_BYTES_MAX:
            self._give_due()
            self._give(group)
            return
        self._due.append(group)
        self._due_bytes += size
        if len(self._due) == 1:
            # After the messages of this turn: peers write the records while this node does.
            self._loop.call_soon(self._write_due)

    @property
    def _is_inline_now(self) -> bool:
        return (
            self._speed.is_fast and self._given_ticket == self._written_ticket and self._is_started
        )

    def _give(self, group: WriteGroup) -> None:
        self._given_ticket = group.ticket
        self._writer_thread.submit(group)

    def _give_due(self) -> None:
        for group in self._take_due():
            self._give(group)

    def _take_due(self) -> list[WriteGroup]:
        due, self._due, self._due_bytes = self._due, [], 0
        return due

    def _write_due(self) -> None:
        groups = self._take_due()
        if not groups or self._is_abandoned:
            return
        self._began_ms, self._is_reported = self._clock.now_ms(), False
        try:
            done = self._persistence.execute(groups)
        except BaseException as error:  # noqa: BLE001 - reported; nothing is written after it
            self._failure = error
            self.abandon()
            self._on_failure(error)
            return
        finally:
            self._began_ms = None
        self._completed(_with_is_inline(done, True))  # noqa: FBT003 - a copier takes values

    def _thread_done(self, done: WriteDone) -> None:
        self._written_ticket = done.ticket
        self._completed(done)

    def _completed(self, done: WriteDone) -> None:
        if done.flushed:
            self._speed.note(done.sync_seconds)
        self._on_done(done)

    def _from_thread(self, call: Callable[..., None], argument: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, argument)

    def _look(self) -> None:
        """Report a pass that blocks the loop for too long, once. On the writer thread."""
        began_ms = self._began_ms
        if began_ms is None or self._is_reported:
            return
        waited_ms = self._clock.now_ms() - began_ms
        if waited_ms >= self._stall_ms:
            self._is_reported = True
            self._on_stall(waited_ms)


def _inline_bytes(group: WriteGroup) -> int | None:
    """Return the bytes to append; None if the group has other effects, which may sync more."""
    size = 0
    for effect in group.effects:
        if type(effect) is not Append or effect.payload is None:
            return None
        size += len(effect.payload)
    return size
