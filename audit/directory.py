"""Plan a read: find out which offsets a directory or file holds, and how far they are committed.

The driver plans; a task gets the finished ``ReadPlan``. Works on a node's data directory
(Quorate's or a Kafka controller's), its partition directory, a copy of either, and a single
segment or checkpoint file. Takes no lock and writes nothing.

How far a log is committed (docs/audit.md):

- Up to the stored high watermark, and up to every checkpoint.
- Without a stored high watermark (Kafka stores none): up to the log end if this node is the only
  voter, else up to the newest checkpoint. Later records are read only on request, and marked.

A damaged log raises an error, unless the caller asks for the records before the damage. A torn tail
is left by a crash and is not part of the log.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path

from audit.errors import AuditError, NoLogError
from audit.plan import CheckpointFile, Entry, ReadPlan, SegmentFile
from audit.segment_file import read_segment
from quorum.batch import HEADER_BYTES, iterate_records, peek_size
from quorum.control import SnapshotHeader, decode_control
from quorum.control_records import LeaderChange, Voters
from quorum.digest import EMPTY_LOG_DIGEST
from quorum.errors import CorruptBatchError, LogDamagedError, SnapshotCorruptError, StorageError
from quorum.log.digest_file import read_digest_file
from quorum.log.filesystem import OsFileSystem
from quorum.log.layout import SEGMENT_SUFFIX, parse_segment_name, partition_directory
from quorum.log.readonly import ReadOnlyLog, open_readonly, scan_and_evaluate
from quorum.log.segment_tail import SegmentTail
from quorum.ports import FileSystem
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, DigestAt, NodeId
from snapshot.naming import FileState, parse_name
from snapshot.reader import CheckpointReader

_ALL = "the option uncommitted reads all of it"
LOOKS_MAX = 5
MARKS = 32
"""Ends of batches that a plan names."""
"""Attempts to list a directory consistently while a running node changes its files."""


def plan_source(
    source: Path, *, with_unknown: bool = False, only_before_damage: bool = False
) -> ReadPlan:
    """Plan a read of everything that a directory or file holds now.

    ``with_unknown`` includes records that are not known to be committed. ``only_before_damage``
    plans the part of a damaged log before the damage, which ``ReadPlan.damage`` names. The
    plan is consistent even if a running node trims its log meanwhile.

    Raises:
        AuditError: There is nothing to read, or the files changed during every attempt.
        LogDamagedError: The log is damaged, or ends below a committed offset.
        StorageError: A file cannot be read.
    """
    if source.is_dir():
        return _plan_directory(
            source, with_unknown=with_unknown, only_before_damage=only_before_damage
        )
    if not source.exists():
        raise AuditError(f"{source}: no such file or directory")
    if _is_checkpoint(source):
        return _plan_checkpoint(source)
    return _plan_segment(source, with_unknown=with_unknown, only_before_damage=only_before_damage)


def _plan_directory(source: Path, *, with_unknown: bool, only_before_damage: bool) -> ReadPlan:
    fs = OsFileSystem()
    partition = partition_directory(source)
    partition = partition if fs.exists(partition) else source
    for look in range(1, LOOKS_MAX + 1):
        # List checkpoints first. One generated during the scan of the log ends above the log end
        # found, so the segments below it would look lost.
        names = fs.list_directory(partition)
        checkpoints = _checkpoints(partition, names)
        try:
            plan = _planned(
                source,
                fs,
                checkpoints,
                with_unknown=with_unknown,
                only_before_damage=only_before_damage,
            )
        except StorageError:
            # Trimming during the scan may also remove a file; real damage is there on a retry.
            if look == LOOKS_MAX or fs.list_directory(partition) == names:
                raise
            continue
        if not _has_moved_on(plan, checkpoints, partition, fs.list_directory(partition)):
            return plan
    raise AuditError(f"{source}: the node kept trimming its log during the read; run it again")


def _has_moved_on(
    plan: ReadPlan, checkpoints: list[CheckpointFile], partition: Path, names: list[str]
) -> bool:
    """Return whether files changed during planning, so that the plan is inconsistent.

    True if a planned file is gone, or the log begins above every checkpoint listed before it.
    """
    now = _checkpoints(partition, names)
    if plan.start_offset > 0 and plan.baseline is None and now != checkpoints:
        return True
    paths = [file.path for file in plan.segments] + [file.path for file in plan.checkpoints]
    return not set(names).issuperset(Path(path).name for path in paths)


def _planned(
    source: Path,
    fs: FileSystem,
    checkpoints: list[CheckpointFile],
    *,
    with_unknown: bool,
    only_before_damage: bool,
) -> ReadPlan:
    with closing(open_readonly(source, fs)) as log:
        return _plan_of(
            source,
            log,
            _segments(fs, log),
            checkpoints,
            with_unknown=with_unknown,
            only_before_damage=only_before_damage,
        )


def _plan_of(
    source: Path,
    log: ReadOnlyLog,
    segments: tuple[SegmentFile, ...],
    checkpoints: list[CheckpointFile],
    *,
    with_unknown: bool,
    only_before_damage: bool,
) -> ReadPlan:
    if not segments and not checkpoints:
        raise NoLogError(f"{source}: contains neither log segments nor checkpoints")
    problems = list(log.problems)
    start, end = log.start.offset, log.end.offset
    is_whole = log.high_watermark is not None and log.high_watermark <= end
    if segments and (is_whole or log.damage is not None):
        # A downloaded checkpoint is stored before it replaces the log. The records that the log
        # still has come first, or they would never be read.
        checkpoints = [file for file in checkpoints if file.end_offset <= end]
    newest = checkpoints[-1].end_offset if checkpoints else 0
    if newest > end or not segments:
        problems.append(f"{log.directory}: the log ends before checkpoint {newest}; log not read")
        segments, start, end = (), newest, newest
    committed = max(newest, _committed(log, segments, checkpoints, problems))
    damage = log.damage
    if committed > end:
        damage = damage or _ends_early(log, committed)
        committed = end
    if damage is not None and not only_before_damage:
        raise damage
    reached = end if with_unknown else min(committed, end)
    marks = _marks(log, start, reached) if segments else ()
    return ReadPlan(
        str(source),
        log.identity.cluster_id if log.identity is not None else "",
        start_offset=start,
        end_offset=reached,
        committed_offset=committed,
        segments=_clipped(_with_entries(log, segments, marks), start, reached),
        checkpoints=tuple(
            file for file in checkpoints if start <= file.end_offset <= max(reached, newest)
        ),
        epochs=log.epochs,
        log_incarnation=log.identity.log_incarnation_id if log.identity is not None else b"",
        marks=marks,
        problems=tuple(problems),
        damage=str(damage) if damage is not None else "",
    )


def _marks(log: ReadOnlyLog, start: int, end: int) -> tuple[DigestAt, ...]:
    """Return ends of batches with their digests: about ``MARKS``, and that of the plan."""
    wanted = range(end, start, -max(1, -(-(end - start) // MARKS)))
    found = {mark.offset: mark for mark in map(log.digest_before, wanted) if mark.value}
    return tuple(found[offset] for offset in sorted(found))


def _with_entries(
    log: ReadOnlyLog, segments: Iterable[SegmentFile], marks: Sequence[DigestAt]
) -> tuple[SegmentFile, ...]:
    """Return the files with an entry at each mark inside of them."""
    return tuple(
        replace(
            segment,
            entries=tuple(
                Entry(mark.offset, position, mark.value)
                for mark in marks
                if segment.base_offset < mark.offset < segment.end_offset
                and (position := log.position_of(mark.offset)) is not None
            ),
        )
        for segment in segments
    )


def _ends_early(log: ReadOnlyLog, committed: int) -> LogDamagedError:
    return LogDamagedError(
        f"readable up to offset {log.end.offset} only, but committed up to {committed}: "
        + "; ".join(log.problems or ["no more segments"]),
        path=log.directory,
        position=0,
        offset=log.end.offset,
    )


def _segments(fs: FileSystem, log: ReadOnlyLog) -> tuple[SegmentFile, ...]:
    bases = log.segment_bases
    found = []
    for base, after in zip(bases, (*bases[1:], log.end.offset)):
        digest = log.digest_at(base) or read_digest_file(fs, log.directory, base) or b""
        path = log.directory / f"{base:020d}{SEGMENT_SUFFIX}"
        found.append(SegmentFile(str(path), base, base, after, digest))
    return tuple(found)


def _clipped(segments: Iterable[SegmentFile], start: int, end: int) -> tuple[SegmentFile, ...]:
    return tuple(
        replace(
            segment,
            start_offset=max(start, segment.start_offset),
            end_offset=min(end, segment.end_offset),
        )
        for segment in segments
        if segment.end_offset > start and segment.start_offset < end
    )


def _checkpoints(directory: Path, names: Iterable[str]) -> list[CheckpointFile]:
    found = []
    for name in names:
        parsed = parse_name(name)
        if parsed and parsed[1] is FileState.SEALED and parsed[0] != BOOTSTRAP_SNAPSHOT_ID:
            found.append(CheckpointFile(str(directory / name), parsed[0]))
    return sorted(found, key=lambda file: (file.snapshot_id.offset, file.snapshot_id.epoch))


def _committed(
    log: ReadOnlyLog,
    segments: tuple[SegmentFile, ...],
    checkpoints: list[CheckpointFile],
    problems: list[str],
) -> int:
    if log.high_watermark is not None:
        return log.high_watermark
    node_id = log.identity.node_id if log.identity is not None else None
    if _is_sole_voter(segments, checkpoints, node_id):
        return log.end.offset
    problems.append(
        f"{log.directory}: no high watermark is stored and there are several voters, so no record "
        f"after the newest checkpoint is known to be committed; {_ALL}"
    )
    return 0


def _is_sole_voter(
    segments: Iterable[SegmentFile], checkpoints: list[CheckpointFile], node_id: NodeId | None
) -> bool:
    """Return whether the newest voter set has one member: the owner of these files, if known."""
    voters: tuple[NodeId, ...] = ()
    if checkpoints:
        head = CheckpointReader(Path(checkpoints[-1].path)).head()
        voters = tuple(voter.key.id for voter in head.voters)
    for segment in segments:
        for batch in read_segment(segment):
            if not batch.header.is_control:
                continue
            for record in iterate_records(batch.data, batch.header, path=batch.path):
                control = decode_control(record, path=batch.path, position=batch.position)
                if isinstance(control, LeaderChange):
                    voters = control.voters
                elif isinstance(control, Voters):
                    voters = tuple(voter.key.id for voter in control.voters)
    return len(voters) == 1 and node_id in (None, voters[0])


def _is_checkpoint(path: Path) -> bool:
    """Decide by the first record, because a copy may have any name."""
    if parse_name(path.name) is not None:
        return True
    if parse_segment_name(path.name) is not None:
        return False
    try:
        return isinstance(CheckpointReader(path).header(), SnapshotHeader)
    except SnapshotCorruptError:
        return False


def _plan_checkpoint(path: Path) -> ReadPlan:
    parsed = parse_name(path.name)
    CheckpointReader(path).verify()
    checkpoint = CheckpointFile(str(path), parsed[0] if parsed else BOOTSTRAP_SNAPSHOT_ID)
    end = checkpoint.end_offset
    return ReadPlan(
        str(path),
        start_offset=end,
        end_offset=end,
        committed_offset=end,
        checkpoints=(checkpoint,),
    )


def _begins_with_a_batch(first: bytes, path: Path) -> bool:
    """Return whether a file begins with the header of a batch; False if it may be torn.

    Raises:
        AuditError: It begins with something else, and its name is not that of a segment.
        CorruptBatchError: It is a segment by its name.
    """
    try:
        return peek_size(first, path=path) is not None
    except CorruptBatchError as error:
        if parse_segment_name(path.name) is not None:
            raise
        raise AuditError(
            f"{path}: neither a log segment nor a checkpoint: {error.cause}"
        ) from error


def _plan_segment(path: Path, *, with_unknown: bool, only_before_damage: bool) -> ReadPlan:
    with closing(OsFileSystem().open(path)) as file:
        first = file.read_at(0, HEADER_BYTES)
        if len(first) < HEADER_BYTES or not _begins_with_a_batch(first, path):
            raise AuditError(f"{path}: too short for a log segment")
        base = int.from_bytes(first[:8], "big")
        digest = EMPTY_LOG_DIGEST if base == 0 else b""
        scan, damage = scan_and_evaluate(file, path, SegmentTail(base, 0, 0, digest))
    if damage is not None and not only_before_damage:
        raise damage
    problems = [] if scan.problem is None else [str(damage or scan.problem)]
    segment = SegmentFile(str(path), base, base, scan.tail.end_offset, digest)
    committed = segment.end_offset
    if not _is_sole_voter((segment,), [], None):
        committed = segment.base_offset
        problems.append(f"{path}: a single segment does not record how far it is committed; {_ALL}")
    end = segment.end_offset if with_unknown else committed
    return ReadPlan(
        str(path),
        start_offset=segment.base_offset,
        end_offset=end,
        committed_offset=committed,
        segments=_clipped((segment,), segment.base_offset, end),
        epochs=tuple(scan.epochs),
        problems=tuple(problems),
        damage="" if damage is None else str(damage),
    )
