"""What can go wrong between a metadata log and its audit trail."""

from __future__ import annotations

from quorum.errors import QuorateError
from quorum.types import Epoch


class AuditError(QuorateError):
    """A question that cannot be answered from what is there; says what is missing."""


class LogTruncatedError(AuditError):
    """The log no longer contains what was read from it before (requirements 320.4, 320.9).

    ``offset`` is that of the first divergent record, or at least not below it where it is not
    exact, and ``epoch`` what was read there before.
    """

    def __init__(self, what: str, *, offset: int, epoch: Epoch, is_exact: bool = True) -> None:
        place = "is" if is_exact else "is at most"
        super().__init__(
            f"LOG_TRUNCATED: {what}; the first divergent offset {place} {offset} "
            f"(epoch {epoch} then)"
        )
        self.offset = offset
        self.epoch = epoch
        self.is_exact = is_exact
