"""What ends a log: a write or sync that failed, after which nothing is written any more.

A failed sync may have dropped what it was asked to keep, so trying again would call durable what is
not (ADR 7). Entered once per pass of the writer, so these are plain objects, made once per log.
"""

from __future__ import annotations

from types import TracebackType

from quorum.errors import DiskFullError, StorageError


class _UnlessFull:
    """As ``Failure``, except that a full disk ends nothing."""

    __slots__ = ("_failure",)

    def __init__(self, failure: Failure) -> None:
        self._failure = failure

    def __enter__(self) -> None:
        """Begin work that a full disk leaves undone."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if error is not None and not isinstance(error, DiskFullError):
            self._failure.__exit__(kind, error, traceback)


class Failure:
    """Why a log may not be used any further; a ``with`` block notes a ``StorageError`` inside.

    ``unless_full``, entered instead, is for work that a full disk leaves as it was, so that it may
    be tried again.
    """

    __slots__ = ("cause", "unless_full")

    def __init__(self) -> None:
        self.cause = ""
        """Empty while nothing has failed."""
        self.unless_full = _UnlessFull(self)

    def __enter__(self) -> None:
        """Begin work after whose failure nothing may be written."""

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if isinstance(error, StorageError):
            self.cause = str(error)
