"""Positions in a source, which moments stand for, and the states there.

A source is what ``audit.directory`` can plan: a data directory or metadata partition directory,
ours or a Kafka controller's, a copy of one, a segment, or a checkpoint. Nothing is written and no
lock is taken, so the node may be running.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from audit.directory import plan_source
from audit.errors import AuditError
from audit.plan import ReadPlan
from audit.replay import batches_of, image_at, oldest_state
from quorate.timetravel.moments import NEWEST, Moment, time_text
from snapshot.reader import CheckpointReader
from statemachine.image import MetadataImage


@dataclass(frozen=True, slots=True)
class PastState:
    """The state of a source at a position."""

    plan: ReadPlan
    offset: int
    """The position that was wanted, or that the wanted time stands for."""
    image: MetadataImage
    """Ends at ``offset`` or, if that is inside a batch or a transaction, in front of it."""


def state_at(source: Path, moment: Moment = NEWEST, *, with_uncommitted: bool = False) -> PastState:
    """Return the state of ``source`` at ``moment``.

    It is replayed from the nearest checkpoint below. ``with_uncommitted`` also admits offsets that
    are not known to be committed, as all are behind the newest checkpoint of one of several Kafka
    controllers.

    Raises:
        AuditError: The source cannot show it; the message names the oldest or newest state that it
            can show.
        LogDamagedError, CorruptBatchError, SnapshotCorruptError: A file is damaged.
        StorageError: A file cannot be read.
    """
    plan = plan_source(source, with_unknown=with_uncommitted)
    return state_of(plan, moment)


def state_of(plan: ReadPlan, moment: Moment = NEWEST) -> PastState:
    """Return the planned source's state at ``moment``; raises as ``state_at``."""
    offset = offset_of(plan, moment)
    return PastState(plan, offset, image_at(plan, offset).image)


def offset_of(plan: ReadPlan, moment: Moment) -> int:
    """Return the offset that ``moment`` stands for; raises as ``state_at``."""
    if moment.offset is not None:
        return moment.offset
    if moment.time_ms is not None:
        return _offset_at(plan, moment.time_ms)
    return plan.end_offset


def first_append_time(plan: ReadPlan) -> int | None:
    """Return when the first batch that is left was appended, ms since 1970; None without one."""
    for batch in batches_of(plan, plan.start_offset, plan.start_offset + 1):
        return batch.header.max_timestamp
    return None


def _offset_at(plan: ReadPlan, time_ms: int) -> int:
    begin = oldest_state(plan)
    if plan.baseline is not None or not plan.segments:
        checkpoint = plan.checkpoints[0]
        covered = CheckpointReader(Path(checkpoint.path)).head().last_contained_log_timestamp
        if covered > time_ms:
            raise AuditError(
                f"{plan.source}: the log was trimmed, so the state at {time_text(time_ms)} is "
                f"lost; the oldest state that can be shown is as of offset {begin}, of "
                f"{time_text(covered)}"
            )
        begin = checkpoint.end_offset
    # Append times of two leaders need not rise, so every batch is looked at.
    for batch in batches_of(plan, begin, plan.end_offset):
        header = batch.header
        if header.max_timestamp > time_ms and header.base_offset >= begin:
            return header.base_offset
    return plan.end_offset
