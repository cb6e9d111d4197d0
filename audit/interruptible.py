"""Run a call into an engine so that Ctrl-C ends it.

Python runs its signal handlers in the main thread, and only between its own steps. A query that
runs there in DuckDB therefore sees no signal, or ends as an error of the engine.
"""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import TypeVar

T = TypeVar("T")
_REPEAT_S = 0.05


def run_interruptible(call: Callable[[], T], interrupt: Callable[[], object]) -> T:
    """Return what ``call`` returns, or raise what it raises; it runs in a thread of its own.

    If the waiting thread is interrupted, as by KeyboardInterrupt, ``interrupt`` is called until the
    call has ended, and the interruption is raised.
    """
    results: list[T] = []
    failures: list[BaseException] = []
    ended = Event()

    def run() -> None:
        try:
            results.append(call())
        except BaseException as error:  # noqa: BLE001 - raised again in the thread that waits
            failures.append(error)
        finally:
            ended.set()

    # No join(): one that is interrupted takes a running thread for ended, in Python 3.11.
    thread = Thread(target=run, name="audit-query", daemon=True)
    try:
        thread.start()
        ended.wait()
    except BaseException:
        # Repeated: the engine forgets one that comes before the query has begun.
        while thread.ident is not None and not ended.is_set():
            interrupt()
            ended.wait(_REPEAT_S)
        raise
    if failures:
        raise failures[0]
    return results[0]
