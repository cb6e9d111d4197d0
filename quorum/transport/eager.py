"""Run a coroutine without a task: its first step at once, each further step when a future is done.

A task begins in the next turn of the event loop. The first step of a write to a stream passes the
bytes to the kernel, and the other replica waits for them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, TypeAlias

OnEnd: TypeAlias = Callable[[BaseException | None], None]
"""Receives what the coroutine raised, or None."""


def begin(coroutine: Coroutine[Any, Any, object], on_end: OnEnd) -> bool:
    """Run ``coroutine`` up to its first wait; call it on the event loop's thread.

    It may await futures only, and must not use the current task. It cannot be cancelled.

    Returns:
        Whether it has ended. If not, ``on_end`` is called later, once, never inside this call.

    Raises:
        Exception, asyncio.CancelledError: From its first step. The latter does not mean that the
            caller was cancelled: gRPC raises it for a cancelled call.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration:
        return True
    _wait(awaited, partial(_go_on, coroutine, on_end))
    return False


def run_into(
    coroutine: Coroutine[Any, Any, object], result: asyncio.Future[Any], _: object = None
) -> None:
    """Run ``coroutine``, and set ``result`` to what it returns or raises.

    The limits of ``begin`` apply to it. If ``result`` is done before, as by a time limit or because
    its waiter was cancelled, the coroutine runs on and its outcome is dropped.
    """
    try:
        awaited = coroutine.send(None)
    except StopIteration as ended:
        if not result.done():
            result.set_result(ended.value)
    except asyncio.CancelledError:
        result.cancel()
    except Exception as error:  # noqa: BLE001 - handed on
        if not result.done():
            result.set_exception(error)
    else:
        _wait(awaited, partial(run_into, coroutine, result))


def _go_on(coroutine: Coroutine[Any, Any, object], on_end: OnEnd, _: object = None) -> None:
    try:
        awaited = coroutine.send(None)
    except StopIteration:
        on_end(None)
    except (Exception, asyncio.CancelledError) as error:  # noqa: BLE001 - handed on
        on_end(error)
    else:
        _wait(awaited, partial(_go_on, coroutine, on_end))


def _wait(awaited: asyncio.Future[Any] | None, then: Callable[..., None]) -> None:
    if awaited is None:
        # A bare yield, as in ``asyncio.sleep(0)``.
        asyncio.get_running_loop().call_soon(then)
    else:
        awaited.add_done_callback(then)
