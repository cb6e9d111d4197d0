"""Name the batch whose epoch is wrong, where it is another one than where a check fails.

A batch's epoch is outside its checksum. Epochs do not fall in a log, so one that was raised shows
at the batch behind it, whose epoch is right. One that was changed and still does not fall shows
only in the log digest, at the end of its segment. One change must explain what was found.

See: ``epoch_evidence``, ADR 5.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quorum.batch import BatchHeader
from quorum.errors import LogDamagedError
from quorum.log.damage import find_batch
from quorum.log.layout import EPOCH_FILE_NAME
from quorum.log.scan import SegmentScan
from quorum.ports import File
from quorum.types import Epoch, EpochStart


def of_fall(
    damage: LogDamagedError,
    file: File,
    scan: SegmentScan,
    before: Epoch,
    stored: Sequence[EpochStart],
) -> LogDamagedError:
    """Return ``damage`` behind ``scan``, as that of the last batch scanned if that one is wrong.

    It is if its epoch alone stands out: it opens an epoch, and the next batch continues the one
    before. Three sources tell it from a next batch that was lowered, the first that knows: the
    batch behind both, the epoch file (``stored``), and that only a control batch opens an epoch.
    ``before`` is the epoch before the segment.
    """
    path = Path(str(damage.path))
    tail = scan.tail
    current = _batch_at(file, path, tail.position)
    if current is None or current.base_offset != tail.end_offset or current.epoch >= tail.epoch:
        return damage
    epochs = [before, *(each.epoch for each in scan.epochs)]
    if not scan.epochs or current.epoch < epochs[-2]:
        return damage
    raised = scan.epochs[-1]
    suspect = find_batch(file, path, 0, raised.start_offset)
    if suspect is None or suspect.end_offset != current.base_offset:
        # The epoch has several batches.
        return damage
    after = _batch_at(file, path, tail.position + current.size)
    if after is not None and not after.is_control and after.base_offset == current.end_offset:
        is_raised = after.epoch < raised.epoch
    elif stored and stored[0].start_offset <= raised.start_offset <= stored[-1].start_offset:
        is_raised = raised not in stored
    else:
        is_raised = not suspect.is_control
    if not is_raised:
        return damage
    cause = f"wrong epoch {raised.epoch}: the batch behind it is of epoch {current.epoch}"
    return LogDamagedError(cause, path=path, position=suspect.position, offset=suspect.base_offset)


def of_digest(
    damage: LogDamagedError, file: File, base: int, scan: SegmentScan, stored: Sequence[EpochStart]
) -> LogDamagedError:
    """Return ``damage``, a wrong log digest in the segment ``base``, as that of a wrong epoch.

    That is the first place where the epoch file (``stored``) and the batches differ. The file has
    no checksum, but the digest says that the batches are wrong. If they do not differ, ``damage``
    is returned as it is: its segment is damaged, and no one knows where.
    """
    offset = _first_difference(base, scan, stored) if stored else None
    path = Path(str(damage.path))
    batch = None if offset is None else find_batch(file, path, 0, offset)
    if offset is None or batch is None or batch.base_offset != offset:
        return damage
    entry = next((f"epoch {each.epoch}" for each in stored if each.start_offset == offset), "none")
    cause = (
        f"wrong epoch {batch.epoch}: the log digest differs from the stored one, and "
        f"{EPOCH_FILE_NAME} has {entry} beginning here"
    )
    return LogDamagedError(cause, path=path, position=batch.position, offset=offset)


def _first_difference(base: int, scan: SegmentScan, stored: Sequence[EpochStart]) -> int | None:
    end = scan.tail.end_offset
    begun = {each.start_offset: each.epoch for each in scan.epochs}
    entries = {each.start_offset: each.epoch for each in stored if base <= each.start_offset < end}
    for offset in sorted({*begun, *entries}):
        if begun.get(offset) == entries.get(offset) or offset < stored[0].start_offset:
            continue
        epoch = max((each for at, each in begun.items() if at <= offset), default=None)
        is_moved = offset == stored[0].start_offset and epoch == entries.get(offset)
        # The file is stored after the batches.
        is_newer = offset > stored[-1].start_offset and offset in scan.controls
        if not is_moved and not is_newer:
            return offset
    return None


def _batch_at(file: File, path: Path, position: int) -> BatchHeader | None:
    found = find_batch(file, path, position, 0)
    return found if found is not None and found.position == position else None
