"""The asyncio shell: one loop, one timer and the writer thread around a driver.

Everything that touches the driver runs on the loop's thread. The writer thread reports through
``call_soon_threadsafe``. The timer is lazy: a deadline that moves later does not re-arm it, it
merely fires early and finds nothing due.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from quorum.ports import Clock
from quorum.runtime.driver import Driver
from quorum.runtime.persistence import Persistence
from quorum.runtime.ports import WriteDone, WriteGroup
from quorum.runtime.writer import WriterThread


class Shell:
    """Connects a driver to real time and a real disk. Owned by one event loop.

    Life-cycle: construct on the loop, hand ``submit`` and ``arm`` to the driver, ``attach``
    the driver, ``start``, finally ``stop``.
    """

    def __init__(
        self,
        persistence: Persistence,
        clock: Clock,
        *,
        on_failure: Callable[[BaseException], None],
        after_write: Callable[[WriteDone], None],
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._clock = clock
        self._on_failure = on_failure
        self._after_write = after_write
        self._driver: Driver | None = None
        self._timer: asyncio.TimerHandle | None = None
        self._armed_ms: int | None = None
        self._is_stopped = False
        self._writer = WriterThread(
            persistence,
            on_done=lambda done: self._from_thread(self._write_done, done),
            on_failure=lambda error: self._from_thread(self._failed, error),
        )

    def attach(self, driver: Driver) -> None:
        """Name the driver that completions and ticks go to."""
        self._driver = driver

    def start(self) -> None:
        """Start the writer thread."""
        self._writer.start()

    def stop(self) -> None:
        """Write what is queued, then stop the thread and the timer."""
        self._writer.stop()
        self._is_stopped = True
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def submit(self, group: WriteGroup) -> None:
        """The driver's ``Writer``."""
        self._writer.submit(group)

    def arm(self, deadline_ms: int | None) -> None:
        """The driver's deadline hook: make sure ``tick`` is called by then."""
        if deadline_ms is None or self._is_stopped:
            return
        if self._armed_ms is not None and self._armed_ms <= deadline_ms:
            return
        if self._timer is not None:
            self._timer.cancel()
        self._armed_ms = deadline_ms
        delay = max(0, deadline_ms - self._clock.now_ms()) / 1000
        self._timer = self._loop.call_later(delay, self._tick)

    def _tick(self) -> None:
        self._timer = None
        self._armed_ms = None
        self._guard(self._require_driver().tick)

    def _write_done(self, done: WriteDone) -> None:
        self._guard(lambda: self._require_driver().write_done(done))
        self._guard(lambda: self._after_write(done))

    def _failed(self, error: BaseException) -> None:
        self._on_failure(error)

    def _from_thread(self, call: Callable[..., None], argument: object) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(call, argument)

    def _guard(self, call: Callable[[], None]) -> None:
        """The outermost frame: what escapes here ends the node, with its evidence."""
        if self._is_stopped:
            return
        try:
            call()
        except BaseException as error:  # noqa: BLE001 - supervisor: reports and stops, never goes on
            self._on_failure(error)

    def _require_driver(self) -> Driver:
        if self._driver is None:
            raise RuntimeError("attach a driver before starting the shell")
        return self._driver
