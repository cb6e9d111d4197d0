"""Replay a log in parts side by side: each begins with a checkpoint, and has to lead to the next.

A checkpoint whose content a replay has proven stands for all records below it. So if every part
leads to the checkpoint at which the next one begins, all of them together prove what one replay
from the beginning proves. A part that finds anything else proves nothing, and neither do those
behind it: then the log is replayed once more from the beginning, which says exactly what is wrong.
"""

from __future__ import annotations

import gc
import multiprocessing
import signal
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from audit.plan import CheckpointFile, ReadPlan
from audit.replay import oldest_state
from quorate.verification.checkpoint_files import VerifiedCheckpoint
from quorate.verification.log_files import Progress
from quorate.verification.replay import Replayed, replay
from quorum.errors import QuorateError

if TYPE_CHECKING:
    from multiprocessing.sharedctypes import SynchronizedArray

PART_BYTES_MIN = 4 << 20
"""Bytes of a part for which a process is worth its start."""
_POLL_S = 0.2


@dataclass(frozen=True, slots=True)
class Part:
    """The records of [begin, end_offset), behind a checkpoint or the beginning of the source."""

    begin: CheckpointFile | None
    """None: where the source begins."""
    end_offset: int
    checkpoints: tuple[VerifiedCheckpoint, ...]
    """What is compared on the way, ascending; the last one ends the part, unless it is the last."""


class _StoppedError(Exception):
    """Nobody waits for this part any more."""


def replay_in_parts(
    plan: ReadPlan,
    checkpoints: Iterable[VerifiedCheckpoint],
    *,
    processes: int,
    part_bytes_min: int = PART_BYTES_MIN,
    progress: Progress | None = None,
) -> Replayed:
    """Replay everything that ``plan`` covers, as ``replay`` does, in up to ``processes`` processes.

    Raises:
        AuditError, LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As
            ``replay``.
    """
    every = list(checkpoints)
    parts = parts_of(plan, every, part_bytes_min) if processes > 1 else []
    if len(parts) > 1:
        found = _side_by_side(plan, parts, processes, progress)
        if found is not None:
            return _joined(found, every)
    return replay(plan, every, progress=progress)


def parts_of(
    plan: ReadPlan, checkpoints: Sequence[VerifiedCheckpoint], part_bytes_min: int
) -> list[Part]:
    """Split a replay at the checkpoints that hold the whole state; ascending.

    A Kafka controller's checkpoint has no state digest and lacks our own records, so none of those
    begins a part.
    """
    begin: CheckpointFile | None = None
    start = oldest_state(plan)
    bytes_per_offset = _bytes_per_offset(plan)
    parts: list[Part] = []
    inside: list[VerifiedCheckpoint] = []
    for each in checkpoints:
        offset = each.snapshot_id.offset
        if each.problem or not start < offset < plan.end_offset:
            continue
        inside.append(each)
        is_whole = each.summary is not None and bool(each.summary.footer.state_digest)
        if is_whole and (offset - start) * bytes_per_offset >= part_bytes_min:
            parts.append(Part(begin, offset, tuple(inside)))
            begin, start, inside = CheckpointFile(str(each.path), each.snapshot_id), offset, []
    ending = [each for each in checkpoints if each.snapshot_id.offset == plan.end_offset]
    parts.append(Part(begin, plan.end_offset, (*inside, *ending)))
    return parts


def _bytes_per_offset(plan: ReadPlan) -> float:
    size = sum(Path(each.path).stat().st_size for each in plan.segments)
    offsets = sum(each.end_offset - each.base_offset for each in plan.segments)
    return size / max(offsets, 1)


def _side_by_side(
    plan: ReadPlan, parts: Sequence[Part], processes: int, progress: Progress | None
) -> list[Replayed] | None:
    """Replay each part; None if one of them fails or finds something wrong."""
    context = multiprocessing.get_context("spawn")
    done = context.Array("q", len(parts) + 1)
    with (
        ProcessPoolExecutor(
            min(processes, len(parts)),
            mp_context=context,
            initializer=_begin,
            initargs=(done, gc.get_threshold()),
        ) as pool,
        _stopping(done),
    ):
        waiting: set[Future[Replayed | None]] = set()
        futures = [pool.submit(_replay_part, plan, part, at) for at, part in enumerate(parts)]
        waiting.update(futures)
        while waiting:
            finished, waiting = wait(waiting, _POLL_S)
            if progress is not None:
                progress(sum(done[:-1]))
            try:
                if any(each.result() is None for each in finished):
                    return None
            except BrokenProcessPool:  # Killed, as for want of memory: one process needs less.
                return None
    found = [each.result() for each in futures]
    return [each for each in found if each is not None]


@contextmanager
def _stopping(done: SynchronizedArray[int]) -> Iterator[None]:
    """Stop what still runs at the end, also at an interruption."""
    try:
        yield
    finally:
        done[-1] = 1


_done: SynchronizedArray[int]
"""Bytes that each part has replayed; the last value is 1 when nobody waits any more."""


def _begin(done: SynchronizedArray[int], gc_thresholds: tuple[int, int, int]) -> None:
    """Prepare a process for parts. An interruption is the business of the one that waits."""
    global _done
    _done = done
    gc.set_threshold(*gc_thresholds)
    signal.signal(signal.SIGINT, signal.SIG_IGN)


def _replay_part(plan: ReadPlan, part: Part, place: int) -> Replayed | None:
    """Replay one part in this process; None if it fails or finds something wrong."""
    values = _done.get_obj()
    stop_at = len(values) - 1

    def report(size_bytes: int) -> None:
        values[place] = size_bytes
        if int(values[stop_at]) == 1:
            raise _StoppedError

    try:
        found = replay(
            plan,
            part.checkpoints,
            begin=part.begin,
            end_offset=part.end_offset,
            progress=report,
        )
    except (QuorateError, _StoppedError):
        return None
    return None if any(each.problem for each in found.checkpoints) else found


def _joined(found: Sequence[Replayed], checkpoints: Sequence[VerifiedCheckpoint]) -> Replayed:
    compared = {each.snapshot_id: each for part in found for each in part.checkpoints}
    return replace(
        found[-1],
        start_offset=found[0].start_offset,
        size_bytes=sum(each.size_bytes for each in found),
        records=sum(each.records for each in found),
        checkpoints=tuple(compared.get(each.snapshot_id, each) for each in checkpoints),
    )
