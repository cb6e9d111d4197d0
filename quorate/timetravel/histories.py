"""Whether two states belong to one history, and which of their sources has the records between."""

from __future__ import annotations

from pathlib import Path

from audit.errors import AuditError
from audit.plan import ReadPlan
from audit.replay import oldest_state
from audit.segment_file import digest_at
from quorate.timetravel.attribution import Author, authors
from quorate.timetravel.positions import PastState
from snapshot.reader import CheckpointReader
from statemachine.sections.tracking import RecordKey


def relation(first: PastState, second: PastState) -> bool | None:
    """Return whether both sources hold the same log below the lower of the two offsets.

    The log digests there decide. If one is not known, the epochs do: in one cluster a leader writes
    an offset of its epoch once (Log Matching). None if neither is known.
    """
    one, other = first.plan, second.plan
    if one.source == other.source:
        return True
    if one.cluster_id and other.cluster_id and one.cluster_id != other.cluster_id:
        return False
    offset = min(first.image.provenance.end_offset, second.image.provenance.end_offset)
    if offset == 0:
        return True
    digests = [_digest(plan, offset) for plan in (one, other)]
    if all(digests):
        return digests[0] == digests[1]
    epochs = [plan.last_epoch(offset) for plan in (one, other)]
    return epochs[0] == epochs[1] if all(epochs) else None


def authors_between(
    first: PastState, second: PastState, *, same_history: bool | None
) -> dict[RecordKey, list[Author]] | None:
    """Return every change between the two states by entity; see ``attribution.authors``.

    None if the two are not known to share a history, or neither source has that part of the log.

    Raises:
        LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As
            ``audit.replay.scan_range``.
    """
    if not same_history:
        return None
    offsets = (first.image.provenance.end_offset, second.image.provenance.end_offset)
    low, high = min(offsets), max(offsets)
    for plan in (second.plan, first.plan):
        if _reaches(plan, low, high):
            return authors(plan, low, high)
    return None


def _reaches(plan: ReadPlan, low: int, high: int) -> bool:
    try:
        return oldest_state(plan) <= low and high <= plan.end_offset
    except AuditError:
        return False


def _digest(plan: ReadPlan, offset: int) -> bytes:
    found = digest_at(plan, offset)
    if found:
        return found
    for checkpoint in plan.checkpoints:
        if checkpoint.end_offset == offset:
            return CheckpointReader(Path(checkpoint.path)).head().log_digest
    return b""
