"""Failure of a log: after a failed write or sync the log accepts no more writes.

A failed sync may have dropped data, so a retry could report data as durable that is lost (ADR 7).
The writer enters these context managers once per pass, so they are plain objects, one per log.
"""

from __future__ import annotations

from types import TracebackType

from quorum.errors import DiskFullError, StorageError


class _UnlessFull:
    """As ``Failure``, but ignores a full disk."""

    __slots__ = ("_failure",)

    def __init__(self, failure: Failure) -> None:
        self._failure = failure

    def __enter__(self) -> None:
        """Begin work that leaves no change on a full disk."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and not isinstance(error, DiskFullError):
            self._failure.__exit__(kind, error, traceback)


class Failure:
    """Cause that makes a log unusable; as a context manager, it records a ``StorageError``.

    ``unless_full`` is the context manager for work that leaves the log unchanged on a full disk, so
    that it may be retried.
    """

    __slots__ = ("cause", "unless_full")

    def __init__(self) -> None:
        self.cause = ""
        """Empty as long as nothing has failed."""
        self.unless_full = _UnlessFull(self)

    def __enter__(self) -> None:
        """Begin work after whose failure the log must not be written."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, StorageError):
            self.cause = str(error)
