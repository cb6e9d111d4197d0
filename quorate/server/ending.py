"""``Ending``: why a server process ends. It was asked to, it failed, or both.

A requested stop does not make a failure harmless: a disk that fails while the node transfers
leadership is the same disk at the next start, and an operator looks at it only if the exit code
says so.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine

from quorate.cli.exits import Exit, is_of_another_account
from quorum.errors import QuorateError, StorageError

_log = logging.getLogger(__name__)


class Ending:
    """One per process, owned by its event loop.

    The first failure is logged when it comes and kept, whether or not the process was asked to
    stop before; later ones are taken for its consequences.
    """

    def __init__(self) -> None:
        loop = asyncio.get_running_loop()
        self._asked: asyncio.Future[None] = loop.create_future()
        self._failed: asyncio.Future[BaseException] = loop.create_future()

    @property
    def failure(self) -> BaseException | None:
        """The first failure; None while there is none."""
        return self._failed.result() if self._failed.done() else None

    @property
    def is_due(self) -> bool:
        """Whether there is a reason to end."""
        return self._asked.done() or self._failed.done()

    @property
    def status(self) -> Exit:
        """The exit code: 0 without a failure, 8 when the disk cannot be trusted, otherwise 1.

        2 for a file of another account: the next start would end in the same way.
        """
        if self.failure is None:
            return Exit.OK
        if is_of_another_account(self.failure):
            return Exit.USAGE
        return Exit.DAMAGED if isinstance(self.failure, StorageError) else Exit.FAILED

    def ask(self) -> None:
        """Request a stop of the process; once is enough."""
        if not self._asked.done():
            self._asked.set_result(None)

    def fail(self, reason: BaseException) -> None:
        """End the process because of a failure; the first one counts."""
        if self._failed.done():
            return
        self._failed.set_result(reason)
        _log.critical("event=node_failed error=%s", reason, exc_info=trace_of(reason))

    async def wait(self) -> None:
        """Return once there is a reason to end."""
        await asyncio.wait((self._asked, self._failed), return_when=asyncio.FIRST_COMPLETED)

    async def unless_failed(self, work: Coroutine[None, None, None]) -> None:
        """Do ``work``, and leave it at once when the process fails; its own error is a failure."""
        task = asyncio.ensure_future(work)
        await asyncio.wait((task, self._failed), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            task.cancel()
            await asyncio.wait((task,))
        if not task.cancelled() and (error := task.exception()) is not None:
            self.fail(error)


def trace_of(reason: BaseException) -> BaseException | None:
    """Return the exception whose trace the log line shows; none for expected errors."""
    return None if isinstance(reason, QuorateError) else reason
