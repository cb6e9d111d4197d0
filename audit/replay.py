"""Replay a planned range of the log: the baseline, then its batches; the state as of an offset.

This module decides where a replay begins. ``reader`` makes Arrow rows of what it yields; tools that
show a past state use it without Arrow.

Runs on Spark executors: its imports must not reach an event loop, gRPC or protobuf.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import dataclass, replace

from audit.errors import AuditError
from audit.plan import CheckpointFile, ReadPlan
from audit.scan import Scan, ScannedBatch, load_state
from audit.segment_file import FoundBatch, read_segment
from quorum.types import SnapshotId
from statemachine.image import EMPTY_IMAGE, MetadataImage


@dataclass(frozen=True, slots=True)
class Baseline:
    """The state below an offset, in place of the records that led to it."""

    snapshot_id: SnapshotId
    image: MetadataImage
    checkpoint: CheckpointFile | None = None


def scan_range(
    plan: ReadPlan,
    start_offset: int,
    end_offset: int,
    *,
    with_state: bool = True,
    partitions_of: Collection[str] | None = None,
    with_data: bool = True,
    grouped: bool = False,
) -> Iterator[Baseline | ScannedBatch]:
    """Yield everything in [start_offset, end_offset): the baseline if it is in range, then batches.

    Without ``with_state`` nothing is replayed before the range, and the batches lack topic names,
    derived changes and typed changes. Without ``with_data`` there are control batches only, and no
    state; the others are verified, and not decoded. The rest is as in ``Scan``.

    Raises:
        LogDamagedError, CorruptBatchError, SnapshotCorruptError: A file is damaged or holds
            records unknown to this release; the message names file, position and cause.
        StorageError: A file cannot be read.
    """
    baseline = plan.baseline
    if baseline is not None and start_offset < baseline.end_offset:
        scan = Scan(None)
        middle = min(baseline.end_offset, end_offset)
        for batch in batches_of(plan, start_offset, middle):
            if with_data or batch.header.is_control:
                yield scan.take(batch)
        if baseline.end_offset > end_offset:
            return
        image = load_state(baseline)
        yield Baseline(baseline.snapshot_id, image, baseline)
        scan = Scan(image if with_state else None, partitions_of=partitions_of, grouped=grouped)
        start_offset = baseline.end_offset
    else:
        scan = (
            scan_to(plan, start_offset, partitions_of=partitions_of, grouped=grouped)
            if with_state and with_data
            else Scan(None)
        )
    for batch in batches_of(plan, start_offset, end_offset):
        if with_data or batch.header.is_control:
            yield scan.take(batch)


def image_at(plan: ReadPlan, offset: int) -> Baseline:
    """Return the state as of ``offset``: every change that is visible below it.

    Raises:
        AuditError: The state at that offset is not known from this source.
        LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As
            ``scan_range``.
    """
    lowest = oldest_state(plan)
    if offset < lowest:
        raise AuditError(
            f"{plan.source}: the log was trimmed, so the state as of offset {offset} is lost; the "
            f"oldest state that can be shown is as of offset {lowest}"
        )
    if offset > plan.end_offset:
        raise AuditError(
            f"{plan.source}: the state as of offset {offset} is not known; the newest one known to "
            f"be committed is as of offset {plan.end_offset}"
        )
    image = scan_to(plan, offset).image()
    provenance = image.provenance
    return Baseline(SnapshotId(offset, provenance.epoch), image)


def oldest_state(plan: ReadPlan) -> int:
    """Return the lowest offset whose state this source can show.

    Raises:
        AuditError: It can show none: the log was trimmed, and no checkpoint reaches its start.
    """
    if plan.start_offset > 0 and plan.baseline is None:
        raise AuditError(
            f"{plan.source}: the log begins at offset {plan.start_offset} and no checkpoint "
            "reaches that, so no state is known"
        )
    return plan.baseline.end_offset if plan.baseline is not None else 0


def scan_to(
    plan: ReadPlan,
    offset: int,
    *,
    partitions_of: Collection[str] | None = None,
    grouped: bool = False,
) -> Scan:
    """Replay up to ``offset`` from the newest checkpoint below it."""
    checkpoint = plan.replay_start(offset)
    if checkpoint is not None:
        image, begin = load_state(checkpoint), checkpoint.end_offset
    elif plan.start_offset == 0:
        image, begin = EMPTY_IMAGE, 0
    else:
        return Scan(None)
    scan = Scan(image, partitions_of=partitions_of, grouped=grouped)
    for batch in batches_of(plan, begin, offset):
        if batch.header.end_offset <= offset:
            scan.take(batch, observe=False)
    return scan


def batches_of(plan: ReadPlan, start_offset: int, end_offset: int) -> Iterator[FoundBatch]:
    """Yield the log's batches with a record in [start_offset, end_offset), each verified.

    Raises:
        CorruptBatchError, StorageError: As ``read_segment``.
    """
    for segment in plan.segments:
        start = max(start_offset, segment.start_offset)
        end = min(end_offset, segment.end_offset)
        if start < end:
            yield from read_segment(replace(segment, start_offset=start, end_offset=end))
