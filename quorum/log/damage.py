"""Distinguish a torn tail from damage, and set damaged segments aside.

A crash can only lose or tear data that was not yet durable: the end of the newest segment. Invalid
bytes elsewhere are the disk's fault, and this replica may have acknowledged the lost records.
Such a segment is never cut. It and all later segments are renamed for the operator, and the
caller stores a vote floor first.

See: ADR 7; Alagappan et al., "Protocol-Aware Recovery for Consensus-Based
Storage" (FAST 2018).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from quorum.batch import HEADER_BYTES, BatchHeader, check_crc, peek_size, read_header
from quorum.errors import CorruptBatchError, LogDamagedError
from quorum.log.epoch_file import EpochFile
from quorum.log.high_watermark_file import HighWatermarkFile, Watermarks, load_watermarks
from quorum.log.layout import (
    DAMAGED_SUFFIX,
    DIGEST_SUFFIX,
    EPOCH_FILE_NAME,
    INDEX_SUFFIX,
    LOG_START_NAME,
    SEGMENT_SUFFIX,
    parse_segment_name,
    segment_bases,
    segment_path,
)
from quorum.log.log_start_file import LogStartFile
from quorum.log.segment_tail import join_problem
from quorum.log.side_file import read_file, replace_file
from quorum.ports import File, FileSystem
from quorum.types import LOG_BEGINNING, ZERO_UUID, Epoch, OffsetAndEpoch, Uuid

_SEARCH_BYTES = 1 << 20
_MAGIC_BYTE = b"\x02"
_MAGIC_AT = 16


@dataclass(frozen=True, slots=True)
class Loss:
    """The part of the log that a quarantine removes."""

    first_offset: int
    """All records from here on are removed from the log, or may be lost."""
    end: OffsetAndEpoch
    """The highest end that this replica may have acknowledged: the vote floor to store."""
    segments: tuple[int, ...]
    """Base offsets of the segments set aside, ascending."""


def find_batch(file: File, path: Path, position: int, least_offset: int) -> BatchHeader | None:
    """Return the first valid batch at or behind ``position`` with a base of ``least_offset`` on.

    Tries every byte position, since damage may have moved or destroyed a batch's length.
    The ``position`` in the result counts from the start of the file.
    """
    size = file.size()
    while position + HEADER_BYTES <= size:
        window = file.read_at(position, _SEARCH_BYTES + HEADER_BYTES)
        at = window.find(_MAGIC_BYTE, _MAGIC_AT)
        while at >= 0 and at - _MAGIC_AT < _SEARCH_BYTES:
            start = at - _MAGIC_AT
            header = _batch_at(file, path, position + start, window[start : start + HEADER_BYTES])
            if header is not None and header.base_offset >= least_offset:
                return header
            at = window.find(_MAGIC_BYTE, at + 1)
        position += _SEARCH_BYTES
    return None


def _batch_at(file: File, path: Path, position: int, prefix: bytes) -> BatchHeader | None:
    try:
        size = peek_size(prefix)
        if size is None or position + size > file.size():
            return None
        data = file.read_at(position, size)
        header = read_header(data)
        check_crc(data, header, path=path, base_position=position)
    except CorruptBatchError:
        return None
    return header._replace(position=position)


def evaluate(
    problem: CorruptBatchError,
    file: File,
    path: Path,
    *,
    end_offset: int,
    is_newest: bool,
    durable_offset: int,
) -> LogDamagedError | None:
    """Evaluate the invalid bytes behind the batch that ends at ``end_offset``.

    Returns:
        None for a torn tail: in the newest segment, above the durable end, and with no valid
        batch behind it. Otherwise the damage.
    """
    reason = ""
    if not is_newest:
        reason = "newer segments follow"
    elif end_offset < durable_offset:
        reason = f"the log was on disk up to offset {durable_offset}"
    else:
        later = find_batch(file, path, problem.position, end_offset)
        if later is not None:
            reason = f"a valid batch of offset {later.base_offset} follows at {later.position}"
    if not reason:
        return None
    return LogDamagedError(
        f"damaged batch, {problem.cause}; {reason}",
        path=path,
        position=problem.position,
        offset=end_offset,
    )


def assess_loss(
    fs: FileSystem,
    directory: Path,
    damage: LogDamagedError,
    *,
    epoch_max: Epoch | None = None,
    owner: Uuid = ZERO_UUID,
) -> Loss:
    """Return what ``quarantine`` would remove. Reads only.

    The end is the highest of the stored durable end, the log start and the valid batches in the
    segments concerned. Offset and epoch of a batch are outside its checksum. So a batch does not
    count if it contradicts its neighbour or names an epoch that was never stored: a vote floor
    above every log would silence this replica for ever. ``epoch_max`` is the epoch of
    ``quorum-state``; if it is None (unknown), the unprotected epoch file replaces it. ``owner`` is
    the directory id of the disk. If its durable end is unknown, the result may be too low: the
    caller has then stored a floor before (``quorate.replica.unknown_end``).
    """
    bases = segment_bases(fs.list_directory(directory))
    damaged = _damaged_base(damage)
    lost = tuple(base for base in bases if base >= damaged)
    marks = load_watermarks(fs, directory, owner) or Watermarks()
    # A mark may be older than the log start, and after a quarantine it does not know its epoch.
    newest = _stored_start(fs, directory)
    durable = OffsetAndEpoch(marks.durable_offset, marks.durable_epoch)
    if durable.is_at_least(newest):
        newest = durable
    stored = EpochFile(fs, directory).load() or ()
    epoch_highest = max([marks.durable_epoch, *(entry.epoch for entry in stored)])
    is_bounded = bool(stored)
    if epoch_max is not None:
        epoch_highest, is_bounded = max(epoch_highest, epoch_max), True
    for base in lost:
        for header in _trusted_batches(fs, segment_path(directory, base)):
            end = OffsetAndEpoch(header.end_offset, header.epoch)
            if end.is_at_least(newest) and (header.epoch <= epoch_highest or not is_bounded):
                newest = end
    return Loss(lost[0] if lost else damage.offset, newest, lost)


def _stored_start(fs: FileSystem, directory: Path) -> OffsetAndEpoch:
    """Return the stored log start; the beginning if there is none that the log has reached."""
    try:
        stored = LogStartFile(fs, directory).load()
    except LogDamagedError:
        return LOG_BEGINNING
    return LOG_BEGINNING if stored is None or stored.is_replacing else stored.start


def _damaged_base(damage: LogDamagedError) -> int:
    """Return the base of the damaged segment; 0 (all segments) if no segment is damaged."""
    base = parse_segment_name(Path(str(damage.path)).name)
    return 0 if base is None else base


def _trusted_batches(fs: FileSystem, path: Path) -> Iterator[BatchHeader]:
    """Yield the valid batches of a segment that agree with their direct neighbours."""
    before: BatchHeader | None = None
    agrees = True
    for header in _valid_batches(fs, path):
        is_adjacent = before is not None and before.end_position == header.position
        joins = (
            before is None
            or not is_adjacent
            or not join_problem(header, before.end_offset, before.epoch)
        )
        if before is not None and agrees and joins:
            yield before
        before, agrees = header, joins
    if before is not None and agrees:
        yield before


def reaches_beyond(fs: FileSystem, path: Path, offset: int) -> bool:
    """Whether a segment has a valid batch that ends above ``offset``."""
    return any(header.end_offset > offset for header in _valid_batches(fs, path))


def _valid_batches(fs: FileSystem, path: Path) -> Iterator[BatchHeader]:
    file = fs.open(path)
    try:
        position = 0
        while True:
            header = _batch_at(file, path, position, file.read_at(position, HEADER_BYTES))
            header = header or find_batch(file, path, position, 0)
            if header is None:
                return
            yield header
            position = header.end_position
    finally:
        file.close()


def quarantine(
    fs: FileSystem,
    directory: Path,
    damage: LogDamagedError,
    *,
    store_vote_floor: Callable[[Loss], None],
    epoch_max: Epoch | None = None,
    owner: Uuid = ZERO_UUID,
    rebuilt: list[str] | None = None,
) -> Loss:
    """Rename the damaged segment and all later ones to ``.damaged`` names.

    ``store_vote_floor`` is called first and must make ``Loss.end`` durable, because this replica
    may have acknowledged the removed records. Afterwards ``open_log`` finds a log that ends before
    the damage. Repeatable after a crash at any point. ``epoch_max`` and ``owner``: see
    ``assess_loss``; ``rebuilt``: see ``open_log``.

    Damage outside the segments (a log start that is unreadable or matches no checkpoint)
    sets the whole log and the damaged file aside.

    Raises:
        StorageError: Files could not be renamed; completed renames remain.
    """
    loss = assess_loss(fs, directory, damage, epoch_max=epoch_max, owner=owner)
    store_vote_floor(loss)
    is_whole = parse_segment_name(Path(str(damage.path)).name) is None
    end_offset = 0 if is_whole else loss.first_offset
    watermarks = HighWatermarkFile(fs, directory, owner)
    if rebuilt is not None:
        rebuilt += watermarks.repaired
    try:
        marks = watermarks.marks
        if marks.durable_offset > end_offset:
            high_watermark = min(marks.high_watermark, end_offset)
            watermarks.store_durably(Watermarks(high_watermark, end_offset))
    finally:
        watermarks.close()
    for base in reversed(loss.segments):
        for suffix in (INDEX_SUFFIX, DIGEST_SUFFIX, SEGMENT_SUFFIX):
            _set_aside(fs, segment_path(directory, base, suffix))
        fs.sync_directory(directory)
    fs.unlink(directory / EPOCH_FILE_NAME)
    if is_whole:
        _set_aside(fs, directory / LOG_START_NAME)
    fs.sync_directory(directory)
    return loss


def keep_copy(fs: FileSystem, path: Path) -> None:
    """Copy a damaged side file that is about to be replaced to a ``.damaged`` name, durably."""
    replace_file(fs, _free_name(fs, path), read_file(fs, path))


def _set_aside(fs: FileSystem, path: Path) -> None:
    """Rename to ``.damaged``, with a number if an earlier quarantine used that name."""
    if fs.exists(path):
        fs.rename(path, _free_name(fs, path))


def _free_name(fs: FileSystem, path: Path) -> Path:
    target = path.with_name(path.name + DAMAGED_SUFFIX)
    number = 0
    while fs.exists(target):
        number += 1
        target = path.with_name(f"{path.name}{DAMAGED_SUFFIX}.{number}")
    return target
