"""The asyncio shell: one loop, one timer and the writer thread around a replica.

All calls of the replica run on the loop's thread. The writer thread reports through
``call_soon_threadsafe``; small passes run on the loop's thread (``inline_writer``). The timer is
lazy: a later deadline does not re-arm it, so it may fire early with nothing due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Protocol

from quorum.errors import StorageError
from quorum.ports import Clock
from quorum.runtime.inline_writer import InlineWriter
from quorum.runtime.persistence import Persistence
from quorum.runtime.ports import WriteDone


class Wheel(Protocol):
    """A driver, or a replica around one."""

    def tick(self) -> None:
        """Handle a deadline; it may come early."""

    def write_done(self, done: WriteDone) -> None:
        """Handle a completion of the writer."""


class Shell:
    """Connects a replica to real time and a real disk. Owned by one event loop.

    It implements the lower half of a ``Host``: ``clock``, ``writer``, ``on_deadline`` and
    ``on_failure``. Life-cycle: construct on the loop, ``attach`` the replica, ``start``, finally
    ``stop``.
    """

    def __init__(
        self,
        persistence: Persistence,
        clock: Clock,
        *,
        on_failure: Callable[[BaseException], None],
        inline_sync_ms_max: float = 0,
        stall_ms: int = 2000,
    ) -> None:
        """``on_failure`` is called once, on the loop's thread, with the exception that escaped the
        replica, ended the writer or was passed to the method ``on_failure``. After that the
        replica is not called any more.

        Args:
            persistence: The writer runs it.
            clock: The time of deadlines.
            on_failure: See above.
            inline_sync_ms_max: Longest of the latest syncs with which small passes run on the
                loop's thread; 0: never.
            stall_ms: After this long such a pass is reported to ``on_inline_stall``.
        """
        self.clock = clock
        self.writer = InlineWriter(
            persistence,
            clock,
            inline_sync_ms_max=inline_sync_ms_max,
            stall_ms=stall_ms,
            on_done=self._write_done,
            on_failure=self.on_failure,
            on_stall=self.on_inline_stall,
        )
        self._loop = asyncio.get_running_loop()
        self._report_failure = on_failure
        self._wheel: Wheel
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopped = False
        self._has_failed = False

    def attach(self, wheel: Wheel) -> None:
        """Set the receiver of completions and ticks."""
        self._wheel = wheel

    def start(self) -> None:
        """Start the writer thread."""
        self.writer.start()

    @property
    def is_writing(self) -> bool:
        """Whether the writer thread is alive: after ``stop``, whether a hung disk blocks it."""
        return self.writer.is_running

    def stop(self, timeout_s: float | None = None) -> bool:
        """Write queued groups, then stop thread and timer; return whether all was written.

        A failure of the writer, also of its last pass, has been reported on return.
        """
        is_written = self.writer.stop(timeout_s)
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.writer.failure is not None:
            # The thread's own report waits for a turn of the loop that may not come.
            self.on_failure(self.writer.failure)
        return is_written

    def on_failure(self, error: BaseException) -> None:
        """Stop the node because of ``error``; on the loop's thread, at any time.

        The first error is reported; later ones are its consequences. The replica is called no
        more. After a disk failure the writer's queue is dropped too: after a failed sync, the next
        one may claim success for lost data.
        """
        if self._has_failed:
            return
        self._has_failed = True
        if isinstance(error, StorageError):
            self.writer.abandon()
        self._report_failure(error)

    def on_deadline(self, deadline_ms: int) -> None:
        """Ensure that ``tick`` is called by then."""
        if self._is_stopped:
            return
        if self._timer is not None:
            self._timer.cancel()
        delay = max(0, deadline_ms - self.clock.now_ms()) / 1000
        self._timer = self._loop.call_later(delay, self._tick)

    def take_turn(self) -> bool:
        """Take a turn of the raft loop now, due or not; return whether the replica still works."""
        self.guard(self._wheel.tick)
        return not (self._is_stopped or self._has_failed)

    def _tick(self) -> None:
        self._timer = None
        self.guard(self._wheel.tick)

    def _write_done(self, done: WriteDone) -> None:
        # The driver first: peers and clients wait for it.
        self.guard(self._wheel.write_done, done)
        self.on_written(done)

    def on_written(self, done: WriteDone) -> None:
        """Hook for metrics, called after the replica has processed ``done``."""

    def on_inline_stall(self, waited_ms: int) -> None:
        """Hook for logs: a pass has blocked the loop's thread for this long. Writer thread."""

    def to_driver(self, call: Callable[[], None]) -> None:
        """Run a call on the loop's thread under ``guard``. Any thread."""
        self._from_thread(self.guard, call)

    def _from_thread(self, call: Callable[..., None], argument: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, argument)

    def guard(self, call: Callable[..., None], *arguments: object) -> None:
        """Run a call; an exception from it stops the node, with its traceback.

        After a failure no call is made: the state of the replica cannot be trusted.
        """
        if self._is_stopped or self._has_failed:
            return
        try:
            call(*arguments)
        except BaseException as error:  # noqa: BLE001 - supervisor: reports and stops, never goes on
            self.on_failure(error)
