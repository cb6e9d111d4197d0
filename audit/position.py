"""Positions in a log that is read as files: the value that consumers and watches store, too.

A Spark stream and an export keep a ``LogPosition``. What was read is compared with the log by
epochs, which locate a divergence, and by log digest, which proves it.

See: KIP-279 (279.2), requirements 320.3 to 320.9; ``quorum.log_position``.
"""

from __future__ import annotations

from collections.abc import Sequence

from audit.errors import AuditError, LogTruncatedError
from audit.lineage import epochs_below, find_divergence
from audit.plan import ReadPlan
from audit.segment_file import digest_at, digests_at
from quorum.log_position import Divergence, EpochEntry, Lineage, LogPosition


def position_at(plan: ReadPlan, offset: int, known: Sequence[EpochEntry] = ()) -> LogPosition:
    """Return the position behind everything below ``offset``, the end of a batch.

    ``known`` are the epochs of the position before it.

    Raises:
        CorruptBatchError, StorageError: A segment is damaged, or cannot be read.
    """
    epochs = epochs_below(known, plan.epochs, offset)
    had = {entry.epoch for entry in known}
    starts = [entry.start_offset for entry in epochs if entry.epoch not in had]
    digests = digests_at(plan, (offset, *starts))
    return LogPosition(
        offset,
        plan.last_epoch(offset),
        tuple(
            entry
            if entry.epoch in had
            else entry._replace(log_digest=digests.get(entry.start_offset, b""))
            for entry in epochs
        ),
        digests.get(offset, b""),
        plan.log_incarnation,
    )


def check_position(plan: ReadPlan, at: LogPosition, *, with_digest: bool = True) -> None:
    """Check that the log still has everything that was read below a position.

    ``with_digest``: also compare the log digest, for which a segment is read.

    Raises:
        LogTruncatedError: The log no longer has the record before the position.
        AuditError: The log start has moved past it, so records were missed.
        CorruptBatchError, StorageError: A segment is damaged, or cannot be read.
    """
    if at.offset == 0:
        return
    if at.offset < plan.start_offset:
        raise AuditError(
            f"{plan.source}: offsets {at.offset} to {plan.start_offset} were trimmed before they "
            "were read; begin a new query"
        )
    newer = next((entry for entry in plan.epochs if entry.epoch > at.epoch), None)
    is_behind_newer = newer is not None and newer.start_offset < at.offset
    is_older_here = at.offset <= plan.end_offset and 0 < plan.last_epoch(at.offset) < at.epoch
    read = at.epochs or (EpochEntry(at.epoch, at.offset - 1),)
    if is_behind_newer or is_older_here:
        found = find_divergence(read, at.offset, plan.epochs, plan.end_offset)
    elif with_digest and _has_digest(plan, at.offset, at.log_digest) is False:
        # The epochs of two incarnations may be the same by chance; digests are not.
        found = Divergence(at.offset, -1, is_exact=False)
    else:
        return
    if with_digest:
        found = _confirmed(plan, read, found)
    raise LogTruncatedError(
        f"{plan.source} no longer contains the records read up to offset {at.offset}",
        offset=found.offset,
        epoch=at.epoch,
        is_exact=found.is_exact,
    )


def _has_digest(plan: ReadPlan, offset: int, digest: bytes) -> bool | None:
    """Return whether the log has this digest below ``offset``; None if that is not known."""
    found = digest_at(plan, offset) if digest else b""
    return found == digest if found else None


def _confirmed(plan: ReadPlan, read: Sequence[EpochEntry], found: Divergence) -> Divergence:
    """Confirm a divergence by the digests kept at the starts of epochs."""
    checks = Lineage(read).check_digests(found)
    try:
        offset, digest = next(checks)
        while True:
            offset, digest = checks.send(_has_digest(plan, offset, digest))
    except StopIteration as ended:
        confirmed: Divergence = ended.value
        return confirmed
