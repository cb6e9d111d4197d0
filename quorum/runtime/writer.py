"""The writer thread: one thread, one queue, one sync per pass (group commit).

Groups that arrive during a pass form the next pass. A failure is reported once and ends the
thread: after a failed fsync there must be no further write.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable

from quorum.runtime.persistence import Persistence
from quorum.runtime.ports import WriteDone, WriteGroup


class WriterThread:
    """Runs ``Persistence`` on its own thread.

    ``on_done`` and ``on_failure`` are called on the writer thread; the shell passes them to its
    loop. The core's bound on uncommitted bytes bounds the queue.
    """

    def __init__(
        self,
        persistence: Persistence,
        *,
        on_done: Callable[[WriteDone], None],
        on_failure: Callable[[BaseException], None],
        on_idle: Callable[[], None] | None = None,
        idle_s: float | None = None,
    ) -> None:
        """``on_idle``, if any, is called on the thread after each ``idle_s`` without a group."""
        self._persistence = persistence
        self._on_done = on_done
        self._on_failure = on_failure
        self._on_idle = on_idle
        self._idle_s = idle_s
        self._queue: queue.SimpleQueue[WriteGroup | None] = queue.SimpleQueue()
        self._has_finished = self._is_abandoned = False
        self.failure: BaseException | None = None
        """Exception that ended the thread; set before ``on_failure`` is called."""
        self._system_thread = threading.Thread(target=self._run, name="log-writer", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._system_thread.start()

    def submit(self, group: WriteGroup) -> None:
        """Queue a group for the next pass."""
        self._queue.put(group)

    def abandon(self) -> None:
        """Begin no further pass: queued groups are dropped and never completed.

        A pass under way continues to its end. Any thread may call this.
        """
        self._is_abandoned = True

    @property
    def is_running(self) -> bool:
        """Whether the thread is alive: after ``stop``, whether a hung disk blocks it."""
        return self._system_thread.is_alive()

    def stop(self, timeout_s: float | None = None) -> bool:
        """Write queued groups and end the thread; return whether all was written in time.

        False if the disk hangs, a failure ended the thread, or after ``abandon``. A thread that
        a hung disk blocks cannot be ended; as a daemon it does not keep the process alive.
        """
        self._queue.put(None)
        if self._system_thread.is_alive():
            self._system_thread.join(timeout_s)
        return self._has_finished

    def _run(self) -> None:
        try:
            self._write_passes()
        except BaseException as error:  # noqa: BLE001 - the thread's outermost frame reports all
            # Without this report the node would wait for its disk for ever.
            self.failure = error
            self._on_failure(error)
            return
        self._has_finished = not self._is_abandoned

    def _write_passes(self) -> None:
        stopping = False
        while not stopping:
            groups: list[WriteGroup] = []
            item = self._next()
            while True:
                if item is None:
                    stopping = True
                    break
                groups.append(item)
                try:
                    item = self._queue.get_nowait()
                except queue.Empty:
                    break
            if groups and not self._is_abandoned:
                self._on_done(self._persistence.execute(groups))

    def _next(self) -> WriteGroup | None:
        if self._on_idle is None:
            return self._queue.get()
        while True:
            try:
                return self._queue.get(timeout=self._idle_s)
            except queue.Empty:
                self._on_idle()
