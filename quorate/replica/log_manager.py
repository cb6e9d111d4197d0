"""Reads this replica's own log again on a worker, when the core asks for it.

See: ADR 5; ``quorum.log.verify``.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future

from quorate.replica.boot import Stores
from quorate.replica.host import ReplicaHost
from quorate.replica.paced_files import PacedFiles, PacedStop
from quorum.core.contract.local_events import LocalEvent, LogVerified
from quorum.core.contract.output import VerifyLog
from quorum.errors import StorageError
from quorum.log.config import LogConfig
from quorum.log.verify import Verified, verify_log
from quorum.types import DigestAt


class LogManager:
    """One per replica, owned by the driver's thread. ``notify`` takes the outcome to the core."""

    def __init__(
        self, host: ReplicaHost, stores: Stores, notify: Callable[[LocalEvent], None]
    ) -> None:
        self._files = PacedFiles(host.fs)
        self._host = host
        self._stores = stores
        self._notify = notify
        self._last: Future[Verified] | None = None

    def stop(self) -> Future[Verified] | None:
        """Let a reading under way, and any that is requested later, end at its next piece, without
        a report.

        Returns:
            The last reading that was begun, or None.
        """
        self._files.stop()
        return self._last

    @property
    def failure(self) -> BaseException | None:
        """Return the failure of the last reading that was begun; None while it is under way, and
        after a ``stop``. Any thread may ask.
        """
        last = self._last
        if last is None or not last.done() or last.cancelled():
            return None
        error = last.exception()
        return None if isinstance(error, PacedStop) else error

    def verify(self, request: VerifyLog) -> None:
        """Read everything below ``request.end_offset`` and report to the core."""
        try:
            value = self._stores.log.digest_at(request.end_offset)
        except StorageError:
            value = b""
        end = DigestAt(request.end_offset, value)
        self._last = future = self._host.executor.submit(
            verify_log, self._files, self._stores.directory, end, config=LogConfig()
        )
        future.add_done_callback(
            lambda done: self._host.to_driver(lambda: self._report(request, done))
        )

    def _report(self, request: VerifyLog, done: Future[Verified]) -> None:
        if done.cancelled():
            return
        try:
            found = done.result()
        except PacedStop:
            return
        except StorageError as error:
            self._host.on_failure(error)
            return
        damage = found.damage
        if damage is None:
            self._notify(LogVerified(request.cuts))
        else:
            self._notify(LogVerified(request.cuts, damage.offset, str(damage)))
