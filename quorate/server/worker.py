"""``Worker``: one background thread that does not keep its process from ending.

The executors of the standard library join their threads at the interpreter's end, for as long as
a hung disk holds them.
"""

from __future__ import annotations

import asyncio
import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from functools import partial
from typing import Any, TypeAlias

_Job: TypeAlias = tuple[Future[Any], Callable[[], Any]]


class Worker(Executor):
    """Runs one job after the other on a daemon thread that the first job starts.

    After ``shutdown`` a job that is submitted is cancelled as one that still waits is, instead of
    raising: the submitter checks its future anyway.
    """

    def __init__(self, name: str) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        self._is_shut = False
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Queue a job; its future is cancelled if the worker is shut down. Any thread."""
        future: Future[Any] = Future()
        with self._lock:
            if not self._is_shut:
                self._jobs.put((future, partial(fn, *args, **kwargs)))
                if not self._thread.is_alive():
                    self._thread.start()
                return future
        future.cancel()
        return future

    def shutdown(
        self,
        wait: bool = True,  # noqa: FBT001, FBT002 - the signature of ``Executor``
        *,
        cancel_futures: bool = False,
    ) -> None:
        """Take no more jobs; end after those that wait, or cancel these. Any thread."""
        with self._lock:
            self._is_shut = True
        if cancel_futures:
            self._cancel_waiting()
        self._jobs.put(None)
        if wait and self._thread.is_alive():
            self._thread.join()

    def _cancel_waiting(self) -> None:
        while True:
            try:
                job = self._jobs.get_nowait()
            except queue.Empty:
                return
            if job is not None:
                job[0].cancel()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            _carry_out(*job)
            # Drop all references to this job before the wait for the next one.
            del job


async def is_done_in(limit_s: float, future: Future[Any]) -> bool:
    """Wait for a job, successful or not; return whether it is done within ``limit_s`` seconds.

    The loop turns meanwhile. What callbacks added before have handed to it is called before.
    """
    waited = asyncio.wrap_future(future)
    # Otherwise the loop logs an exception that was never retrieved.
    waited.add_done_callback(lambda done: done.cancelled() or done.exception())
    await asyncio.wait((waited,), timeout=limit_s)
    return waited.done()


def _carry_out(future: Future[Any], call: Callable[[], Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = call()
    except BaseException as error:  # noqa: BLE001 - raised where the future is looked at
        future.set_exception(error)
    else:
        future.set_result(result)
