"""The asyncio shell: one loop, one timer and the writer thread around a replica.

Everything that touches the replica runs on the loop's thread. The writer thread reports through
``call_soon_threadsafe``. The timer is lazy: a deadline that moves later does not re-arm it. It
fires early and finds nothing due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial
from typing import Protocol

from quorum.errors import StorageError
from quorum.ports import Clock
from quorum.runtime.persistence import Persistence
from quorum.runtime.ports import WriteDone
from quorum.runtime.writer import WriterThread


class Wheel(Protocol):
    """What the shell turns: a driver, or a replica around one."""

    def tick(self) -> None:
        """The deadline has come, or earlier."""

    def write_done(self, done: WriteDone) -> None:
        """Take a completion of the writer."""


class Shell:
    """Connects a replica to real time and a real disk. Owned by one event loop.

    The lower half of a ``Host``: ``clock``, ``writer``, ``on_deadline`` and ``on_failure``.
    Life-cycle: construct on the loop, ``attach`` the replica, ``start``, finally ``stop``.
    """

    def __init__(
        self,
        persistence: Persistence,
        clock: Clock,
        *,
        on_failure: Callable[[BaseException], None],
    ) -> None:
        """``on_failure`` is told once, on the loop's thread, of what escaped the replica, ended the
        writer or was given to the method ``on_failure``. The replica is not called any more then.
        """
        self.clock = clock
        self.writer = WriterThread(
            persistence,
            on_done=partial(self._from_thread, self._write_done),
            on_failure=partial(self._from_thread, self.on_failure),
        )
        self._loop = asyncio.get_running_loop()
        self._report_failure = on_failure
        self._wheel: Wheel
        self._timer: asyncio.TimerHandle | None = None
        self._is_stopped = False
        self._has_failed = False

    def attach(self, wheel: Wheel) -> None:
        """Name what completions and ticks go to."""
        self._wheel = wheel

    def start(self) -> None:
        """Start the writer thread."""
        self.writer.start()

    @property
    def is_writing(self) -> bool:
        """Whether the writer thread is alive: after ``stop``, whether the disk still holds it."""
        return self.writer.is_running

    def stop(self, timeout_s: float | None = None) -> bool:
        """Write what is queued, then stop the thread and the timer; whether all was written.

        A failure of the writer has been told when this returns, also one of its last pass.
        """
        is_written = self.writer.stop(timeout_s)
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self.writer.failure is not None:
            # What the thread sent us waits for a turn of the loop that may not come.
            self.on_failure(self.writer.failure)
        return is_written

    def on_failure(self, error: BaseException) -> None:
        """End the node because of ``error``, found anywhere; on the loop's thread, at any time.

        The first is reported, later ones are its consequences. The replica is called no more. When
        a disk failed, what waits for the writer is dropped too: after a failed sync the next one
        may claim success for what is lost.
        """
        if self._has_failed:
            return
        self._has_failed = True
        if isinstance(error, StorageError):
            self.writer.abandon()
        self._report_failure(error)

    def on_deadline(self, deadline_ms: int) -> None:
        """Make sure that ``tick`` is called by then."""
        if self._is_stopped:
            return
        if self._timer is not None:
            self._timer.cancel()
        delay = max(0, deadline_ms - self.clock.now_ms()) / 1000
        self._timer = self._loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self.guard(self._wheel.tick)

    def _write_done(self, done: WriteDone) -> None:
        # First what others wait for.
        self.guard(self._wheel.write_done, done)
        self.on_written(done)

    def on_written(self, done: WriteDone) -> None:
        """The replica has taken ``done``; for whoever counts."""

    def to_driver(self, call: Callable[[], None]) -> None:
        """Make a call on the loop's thread, as ``guard`` does. Any thread."""
        self._from_thread(self.guard, call)

    def _from_thread(self, call: Callable[..., None], argument: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, argument)

    def guard(self, call: Callable[..., None], *arguments: object) -> None:
        """The outermost frame: what escapes here ends the node, with its evidence.

        After a failure nothing is called: what is left of the replica cannot be relied on.
        """
        if self._is_stopped or self._has_failed:
            return
        try:
            call(*arguments)
        except BaseException as error:  # noqa: BLE001 - supervisor: reports and stops, never goes on
            self.on_failure(error)
