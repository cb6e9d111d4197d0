"""Read a log directory without changing it: ours, a copy, or a real Kafka controller's.

For tools. It takes no lock and writes nothing, so it works on the directory of a running node:
concurrent appends are visible or not, but always as whole batches. Damage is distinguished from a
torn tail and reported, not repaired. Never use this for a member of a quorum.

See: KIP-595, KIP-866 (files of a Kafka controller), docs/reference/formats.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from quorum.digest import EMPTY_LOG_DIGEST
from quorum.errors import (
    ElectionStateError,
    IdentityDamagedError,
    IdentityError,
    LogDamagedError,
    QuorumUsageError,
)
from quorum.log.config import LogConfig
from quorum.log.damage import evaluate
from quorum.log.digest_file import read_digest_file
from quorum.log.election_store import ElectionFile
from quorum.log.epoch_evidence import LogFacts, epoch_problems
from quorum.log.epoch_file import EpochFile
from quorum.log.filesystem import OsFileSystem
from quorum.log.high_watermark_file import load_watermarks
from quorum.log.history import clip_start
from quorum.log.identity import MetaProperties, check_partition_metadata, load_foreign_identity
from quorum.log.index import decode_index
from quorum.log.layout import INDEX_SUFFIX, partition_directory, segment_bases, segment_path
from quorum.log.log_start_file import LogStartFile
from quorum.log.retention import covered_bases
from quorum.log.scan import SegmentScan, scan_segment
from quorum.log.segment import Segment
from quorum.log.segment_list import SegmentList
from quorum.log.segment_tail import SegmentTail
from quorum.log.side_file import read_file
from quorum.log.wrong_epoch import of_fall
from quorum.ports import File, FileSystem
from quorum.types import (
    LOG_BEGINNING,
    DigestAt,
    ElectionState,
    Epoch,
    EpochStart,
    OffsetAndEpoch,
)


@dataclass(slots=True)
class ReadOnlyLog:
    """Content of a directory. Close it to release its files."""

    directory: Path
    """The partition directory."""
    identity: MetaProperties | None = None
    election: ElectionState | None = None
    high_watermark: int | None = None
    """Records below it are committed; None if the directory has none (Kafka's)."""
    start: OffsetAndEpoch = LOG_BEGINNING
    """Epoch 0 if the epoch of the record before a log start above 0 is not stored."""
    end: OffsetAndEpoch = LOG_BEGINNING
    epochs: tuple[EpochStart, ...] = ()
    batch_count: int = 0
    size_bytes: int = 0
    problems: list[str] = field(default_factory=list)
    """Errors and missing files, one sentence each with file and position."""
    epoch_problems: tuple[str, ...] = ()
    """Contradictions to the epochs of the batches; also in ``problems``. Searched only if no high
    watermark is stored: beside one there is the log digest, which ``verify`` compares."""
    damage: LogDamagedError | None = None
    """Damage that ended the read early; also in ``problems``. None for a torn tail."""
    torn_tail: str = ""
    """Where a torn tail begins, and why it is invalid; also in ``problems``. Empty if none."""
    missing_identity: str = ""
    """That ``meta.properties`` is missing, as in a copied partition directory; also in
    ``problems``. Empty if it is there."""
    segments: SegmentList | None = None

    def read(self, offset: int, max_bytes: int, *, end_offset: int | None = None) -> bytes:
        """Read as ``LogStore.read``: whole batches from the one containing ``offset`` on.

        Raises:
            QuorumUsageError: ``offset`` lies below the log start.
        """
        if offset < self.start.offset:
            raise QuorumUsageError(f"read at {offset}, below log start {self.start.offset}")
        if self.segments is None:
            return b""
        limit = self.end.offset if end_offset is None else min(end_offset, self.end.offset)
        return self.segments.read(offset, max_bytes, limit)

    def digest_at(self, offset: int) -> bytes:
        """Return the log digest below ``offset``; empty if unknown."""
        return b"" if self.segments is None else self.segments.digest_at(offset)

    def digest_before(self, offset: int) -> DigestAt:
        """Return the log digest at the last end of a batch at or below ``offset``.

        Offset -1 and an empty digest if none is known.
        """
        if self.segments is None:
            return DigestAt(-1, b"")
        return self.segments.digest_before(offset, self.start.offset)

    def position_of(self, offset: int) -> int | None:
        """Return where in its segment file the batch begins whose base offset this is."""
        return None if self.segments is None else self.segments.position_of(offset)

    @property
    def segment_bases(self) -> tuple[int, ...]:
        """Base offsets of the segments read, ascending."""
        return () if self.segments is None else self.segments.bases

    def close(self) -> None:
        """Release all files."""
        if self.segments is not None:
            self.segments.close()


def open_readonly(
    directory: Path,
    fs: FileSystem | None = None,
    *,
    check_indexes: bool = False,
    progress: Callable[[int], None] | None = None,
) -> ReadOnlyLog:
    """Open a data directory, or the partition directory in it, for reading.

    Every batch is verified by its checksum. Reading ends before the first invalid one, which
    ``problems`` describes; so does ``damage`` unless a crash explains it, by the same evaluation as
    at a node's start. Epochs are outside the checksums and are compared with other evidence
    (``epoch_evidence``). ``check_indexes`` compares the ``.index`` files, which nothing depends on,
    with the segments. ``progress`` receives the bytes read so far, at the end of each segment.

    Raises:
        StorageError: A file could not be read.
    """
    fs = fs or OsFileSystem()
    partition = partition_directory(directory)
    if not fs.exists(partition):
        partition = directory
    log = ReadOnlyLog(partition)
    durable_offset = _read_side_files(fs, log)
    stored_start = log.start
    bases = segment_bases(fs.list_directory(partition))
    bases = bases[len(covered_bases(bases, stored_start.offset)) :]
    if not bases:
        log.end = stored_start
        log.problems.append(f"{partition}: no log segments")
        return log
    if bases[0] > stored_start.offset:
        # Kafka does not store its log start: it is the base of the first segment.
        log.start = OffsetAndEpoch(bases[0], 0)
    segments, changes, controls = _open_segments(fs, log, bases, durable_offset, progress)
    log.segments = SegmentList(segments)
    log.end = segments[-1].tail.end
    log.epochs = clip_start(changes, log.start, end_offset=log.end.offset)
    if log.high_watermark is None:
        facts = LogFacts(segments, _begun(segments[0], changes), controls)
        log.epoch_problems = tuple(epoch_problems(fs, partition, facts))
        log.problems += log.epoch_problems
    if check_indexes:
        for segment in segments:
            log.problems += _index_problems(fs, segment)
    return log


def _begun(first: Segment, changes: list[EpochStart]) -> dict[int, Epoch]:
    """Return the epoch by base offset of every epoch start, and of the first batch.

    The first batch is no epoch start if ``log-start`` has the same epoch for the record before it.
    """
    begun = {entry.start_offset: entry.epoch for entry in changes}
    if first.base_epoch > 0 and first.tail.end_offset > first.base_offset:
        return {first.base_offset: first.base_epoch} | begun
    return begun


def _read_side_files(fs: FileSystem, log: ReadOnlyLog) -> int:
    """Read the side files into ``log``; return the stored durable end, 0 if there is none."""
    directory = log.directory
    try:
        log.identity = load_foreign_identity(fs, directory.parent)
    except IdentityDamagedError as damage:
        log.problems.append(str(damage))
    except IdentityError as error:
        log.missing_identity = str(error)
        log.problems.append(log.missing_identity)
    try:
        log.election = ElectionFile(fs, directory).load_foreign()
    except ElectionStateError as unreadable:
        log.problems.append(str(unreadable))
    try:
        check_partition_metadata(fs, directory)
    except IdentityError as error:
        log.problems.append(str(error))
    try:
        stored = LogStartFile(fs, directory).load()
    except LogDamagedError as damaged:
        log.problems.append(str(damaged))
        stored = None
    if stored is not None:
        log.start = stored.start
        if stored.is_replacing:
            log.problems.append(f"{directory}: replacement by snapshot {stored.start} unfinished")
    marks = load_watermarks(fs, directory)
    log.high_watermark = None if marks is None else marks.high_watermark
    return 0 if marks is None else marks.durable_offset


def _open_segments(
    fs: FileSystem,
    log: ReadOnlyLog,
    bases: list[int],
    durable_offset: int,
    progress: Callable[[int], None] | None,
) -> tuple[list[Segment], list[EpochStart], dict[int, int]]:
    segments: list[Segment] = []
    changes: list[EpochStart] = []
    controls: dict[int, int] = {}
    first = log.start.epoch if bases[0] == log.start.offset else 0
    tail = SegmentTail(bases[0], first, 0, b"" if bases[0] else EMPTY_LOG_DIGEST)
    for base in bases:
        path = segment_path(log.directory, base)
        if base != tail.end_offset:
            log.damage = LogDamagedError(
                f"begins at {base}, where {tail.end_offset} follows",
                path=path,
                position=0,
                offset=tail.end_offset,
            )
            log.problems.append(str(log.damage))
            break
        file = fs.open(path)
        digest = tail.digest or read_digest_file(fs, log.directory, base) or b""
        tail = tail._replace(position=0, unindexed_bytes=0, digest=digest)
        scan, log.damage = scan_and_evaluate(
            file, path, tail, is_newest=base == bases[-1], durable_offset=durable_offset
        )
        if log.damage is not None:
            stored = EpochFile(fs, log.directory).load() or ()
            log.damage = of_fall(log.damage, file, scan, tail.epoch, stored)
        segments.append(Segment(file, path, tail, scan.index, scan.tail))
        changes += scan.epochs
        controls |= scan.controls
        log.batch_count += scan.batch_count
        log.size_bytes += scan.tail.position
        if progress is not None:
            progress(log.size_bytes)
        tail = scan.tail
        if scan.problem is not None:
            log.torn_tail = "" if log.damage is not None else str(scan.problem)
            log.problems.append(str(log.damage or scan.problem))
            break
    return segments, changes, controls


def scan_and_evaluate(
    file: File, path: Path, start: SegmentTail, *, is_newest: bool = True, durable_offset: int = 0
) -> tuple[SegmentScan, LogDamagedError | None]:
    """Scan a segment that a node may be appending to, and evaluate its end.

    ``start`` is the state before the segment. ``is_newest`` and ``durable_offset`` describe the
    log around it, as for ``damage.evaluate``.

    Returns:
        The scan, and the damage that ended it; None at the end or before a torn tail.

    Raises:
        StorageError: The file could not be read.
    """
    scan = _scan(file, path, start)
    while scan.problem is not None:
        damage = evaluate(
            scan.problem,
            file,
            path,
            end_offset=scan.tail.end_offset,
            is_newest=is_newest,
            durable_offset=durable_offset,
        )
        if damage is None:
            break
        # Bytes are appended in order: once a valid batch is visible, all bytes before it are too.
        # So bytes that are still invalid in a second scan were not half written in the first.
        again = _scan(file, path, start)
        if again.problem is not None and again.tail.position <= scan.tail.position:
            return again, damage
        scan = again
    return scan, None


def _scan(file: File, path: Path, start: SegmentTail) -> SegmentScan:
    config = LogConfig()
    return scan_segment(
        file,
        path,
        start,
        window_bytes=config.scan_bytes,
        index_interval=config.index_interval_bytes,
    )


def _index_problems(fs: FileSystem, segment: Segment) -> Iterator[str]:
    path = segment.path.with_suffix(INDEX_SUFFIX)
    if not fs.exists(path):
        return
    try:
        data = read_file(fs, path)
    except ValueError as error:
        yield f"{path}: {error}"
        return
    for last_offset, position in decode_index(data, segment.base_offset):
        found = segment.locate(last_offset, segment.tail)
        if found is None or (found[0], found[1].end_offset - 1) != (position, last_offset):
            yield f"{path}: offset {last_offset} is not the end of a batch at {position}"
