"""Errors of reading a metadata log as an audit trail."""

from __future__ import annotations

import os

from quorum.errors import QuorateError, StorageError
from quorum.types import Epoch


class AuditError(QuorateError):
    """The files cannot answer the request; the message names what is missing."""


class NoLogError(AuditError):
    """A folder contains nothing of a log."""


class QueryError(AuditError):
    """A user's query is invalid, or is not a single SELECT; the message has the reason."""


class ExportDamagedError(StorageError):
    """A file of an export is missing or damaged; the message names it and says what to do."""


class ExportTargetError(AuditError):
    """An export may not be written there; the message says why."""


class LogTruncatedError(AuditError):
    """The log no longer contains records that were read before (requirements 320.4, 320.9).

    ``offset`` is that of the first divergent record, or an upper bound of it if not ``is_exact``.
    ``epoch`` is the epoch that was read there before.
    """

    def __init__(self, what: str, *, offset: int, epoch: Epoch, is_exact: bool = True) -> None:
        place = "is" if is_exact else "is at most"
        super().__init__(
            f"LOG_TRUNCATED: {what}; the first divergent offset {place} {offset} "
            f"(formerly of epoch {epoch})"
        )
        self.offset = offset
        self.epoch = epoch
        self.is_exact = is_exact


def reason_of(error: OSError) -> str:
    """Return why the operating system refused; pyarrow's own text repeats path and number."""
    return os.strerror(error.errno) if error.errno else str(error)
