"""Replay a log once from its beginning, and compare every checkpoint on the way with the state."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import chain

from audit.plan import CheckpointFile, ReadPlan
from audit.replay import batches_of, oldest_state
from audit.scan import Scan, load_state
from quorate.verification.checkpoint_files import VerifiedCheckpoint, content_problem
from quorate.verification.log_files import Progress
from quorum.types import Epoch
from statemachine.dump import state_digest
from statemachine.image import EMPTY_IMAGE


@dataclass(frozen=True, slots=True)
class Replayed:
    """A replay of a source, and what it says about its checkpoints."""

    start_offset: int
    """Where it began: 0, or the end of the oldest checkpoint, whose content it trusts."""
    end_offset: int
    epoch: Epoch
    """Epoch of the last record that is visible in the state."""
    state_digest: bytes
    """Digest of the state as of ``end_offset``."""
    size_bytes: int
    records: int
    checkpoints: tuple[VerifiedCheckpoint, ...]


def replay(
    plan: ReadPlan,
    checkpoints: Iterable[VerifiedCheckpoint],
    *,
    begin: CheckpointFile | None = None,
    end_offset: int | None = None,
    progress: Progress | None = None,
) -> Replayed:
    """Replay everything that ``plan`` covers, or the part of it from ``begin`` to ``end_offset``.

    A part begins with the content of the checkpoint ``begin``, which it trusts.

    ``checkpoints`` are ascending. Those that are damaged, outside of the replayed part, or the one
    at which it begins are returned as they are. ``progress`` receives the bytes replayed so far.

    Raises:
        AuditError: No state is known: the log was trimmed and no checkpoint reaches its start.
        LogDamagedError, CorruptBatchError, SnapshotCorruptError: A file is damaged or holds
            records unknown to this release.
        StorageError: A file cannot be read.
    """
    baseline = begin or plan.baseline
    start = oldest_state(plan) if begin is None else begin.end_offset
    end = plan.end_offset if end_offset is None else end_offset
    # The digests were compared when the files were read; a replay needs none of its own.
    plan = replace(
        plan, segments=tuple(replace(each, digest=b"", entries=()) for each in plan.segments)
    )
    scan = Scan(EMPTY_IMAGE if baseline is None else load_state(baseline))
    every = list(checkpoints)
    waiting = {
        each.snapshot_id.offset: index
        for index, each in enumerate(every)
        if not each.problem and start < each.snapshot_id.offset <= end
    }
    ends = iter(chain(sorted(waiting), (end + 1,)))
    next_end = next(ends)
    size_bytes = records = 0
    for batch in batches_of(plan, start, end):
        header = batch.header
        scan.take(batch, observe=False)
        size_bytes += header.size
        records += header.record_count
        if progress is not None:
            progress(size_bytes)
        while header.end_offset >= next_end:
            index = waiting[next_end]
            every[index] = _compared(every[index], scan, header.end_offset)
            next_end = next(ends)
    image = scan.image()
    return Replayed(
        start,
        end,
        image.provenance.epoch,
        state_digest(image),
        size_bytes,
        records,
        tuple(every),
    )


def _compared(checkpoint: VerifiedCheckpoint, scan: Scan, end_offset: int) -> VerifiedCheckpoint:
    offset = checkpoint.snapshot_id.offset
    if end_offset != offset:
        problem = f"no batch of the log ends at offset {offset}"
    elif not scan.is_settled:
        problem = f"a metadata transaction of the log is open at offset {offset}"
    else:
        problem = content_problem(checkpoint, scan.image())
    return replace(checkpoint, problem=problem, is_replayed=not problem)
