"""The incarnation of a log: which of several histories of one cluster this log belongs to.

A Raft log keeps what it committed. An operator may decide to go on without some of it, after the
majority was lost or from a backup. From there on the log is of another incarnation, and nothing of
it may be mixed with the former one. A voters record carries the incarnation as a tagged field.

See: ADR 65, docs/reference/batches.md#control-records.
"""

from __future__ import annotations

from quorum.types import ZERO_UUID, OffsetAndEpoch, Uuid
from quorum.values import value


@value
class LogIncarnation:
    """Names one incarnation. Equal ids are one history; the number is for people."""

    number: int = 0
    id: Uuid = ZERO_UUID
    """Zero for the log that ``quorate format`` began."""
    previous_id: Uuid = ZERO_UUID
    kept: OffsetAndEpoch = OffsetAndEpoch(0, 0)
    """End of the history kept of the previous incarnation: below it, both are the same."""
    report_digest: bytes = b""
    """SHA-256 of the report in the record that began it."""


FIRST_INCARNATION = LogIncarnation()
"""That of a log that has always kept what it committed."""


def can_follow(before: LogIncarnation, after: LogIncarnation) -> bool:
    """Whether a voters record of ``after`` may follow one of ``before`` in a log."""
    return after == before or (
        after.previous_id == before.id != after.id and after.number == before.number + 1
    )
