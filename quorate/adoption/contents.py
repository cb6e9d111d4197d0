"""Verifies a data directory completely before anything is changed.

Takes the newest checkpoint and every batch of the log, committed or not, through the state
machine's own replay.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from quorate.adoption.errors import AdoptionRefusedError
from quorate.features import level_problem
from quorum.batch import iterate_records, scan_batches
from quorum.control import decode_control
from quorum.control_records import KRaftVersion, LeaderChange, Voters
from quorum.errors import (
    CorruptBatchError,
    RecordCodecError,
    ReplayError,
    SnapshotCorruptError,
    UnknownRecordError,
)
from quorum.log.layout import partition_directory
from quorum.log.log_start_file import LogStartFile
from quorum.log.readonly import ReadOnlyLog, open_readonly
from quorum.ports import FileSystem
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, OffsetAndEpoch, SnapshotId, Voter
from snapshot.naming import FileState, parse_name
from snapshot.reader import CheckpointReader
from statemachine.machine import StateMachine

_READ_BYTES = 4 << 20
_UNREADABLE = (
    CorruptBatchError,
    RecordCodecError,
    ReplayError,
    SnapshotCorruptError,
    UnknownRecordError,
)


@dataclass(frozen=True, slots=True)
class Contents:
    """The contents of a directory without damage."""

    partition: Path
    start: OffsetAndEpoch
    """Where the log begins, or has to begin: the oldest checkpoint that the log reaches, if its
    own beginning is gone."""
    end: OffsetAndEpoch
    levels: Mapping[str, int]
    kraft_version: int
    voters: tuple[Voter, ...]
    """Of the newest voters record; empty where the voters are configured."""
    voter_ids: tuple[int, ...]
    """Of that record, or else as the newest leader named them."""


def examine(fs: FileSystem, data_dir: Path) -> Contents:
    """Read everything in a data directory.

    Raises:
        AdoptionRefusedError: Something is damaged, missing, or not known to this release.
        StorageError: A file cannot be read.
    """
    partition = partition_directory(data_dir)
    if not fs.exists(partition):
        raise AdoptionRefusedError(f"{data_dir}: no {partition.name} in it")
    log = open_readonly(data_dir, fs)
    try:
        problems = list(log.problems)
        if problems:
            raise AdoptionRefusedError("; ".join(problems))
        return _Examination(fs, log, partition).run()
    except _UNREADABLE as error:
        raise AdoptionRefusedError(f"{data_dir}: {error}") from error
    finally:
        log.close()


class _Examination:
    def __init__(self, fs: FileSystem, log: ReadOnlyLog, partition: Path) -> None:
        self._fs = fs
        self._log = log
        self._partition = partition
        self._kraft_version = 0
        self._voters: tuple[Voter, ...] = ()
        self._voter_ids: tuple[int, ...] = ()

    def run(self) -> Contents:
        """All of it, in order."""
        log = self._log
        known = checkpoints_of(self._fs, self._partition)
        machine = StateMachine()
        for _, reader in known:
            head = reader.head()
            if head.kraft_version or head.voters:
                self._kraft_version, self._voters = head.kraft_version, head.voters
        newest = known[-1] if known and known[-1][0] != BOOTSTRAP_SNAPSHOT_ID else None
        if newest is not None:
            newest[1].verify()
            machine.load(newest[0], newest[1].batches())
        start = self._start([each for each, _ in known if each != BOOTSTRAP_SNAPSHOT_ID])
        position = machine.image.provenance.end_offset
        for data in batches_of(log, log.start.offset):
            self._note_controls(data)
            if scan_batches(data, verify_crc=False)[-1].end_offset > position:
                machine.apply(data)
        levels = dict(machine.image.features.levels)
        unusable = [problem for each in levels.items() if (problem := level_problem(*each))]
        if unusable:
            raise AdoptionRefusedError("; ".join(unusable))
        ids = tuple(sorted(voter.key.id for voter in self._voters)) or self._voter_ids
        return Contents(
            self._partition, start, log.end, levels, self._kraft_version, self._voters, ids
        )

    def _start(self, known: list[SnapshotId]) -> OffsetAndEpoch:
        log = self._log
        stored = LogStartFile(self._fs, self._partition).load()
        if log.start.offset == 0 or (stored is not None and stored.start == log.start):
            return log.start
        for snapshot_id in known:
            if log.start.offset <= snapshot_id.offset <= log.end.offset:
                return snapshot_id
        raise AdoptionRefusedError(
            f"{self._partition}: the log begins at offset {log.start.offset} and no checkpoint "
            f"between there and its end {log.end.offset} holds what came before"
        )

    def _note_controls(self, data: bytes) -> None:
        for header in scan_batches(data, verify_crc=False):
            for record in iterate_records(data, header) if header.is_control else ():
                control = decode_control(record)
                if isinstance(control, KRaftVersion):
                    self._kraft_version = control.version
                elif isinstance(control, Voters):
                    self._voters = control.voters
                elif isinstance(control, LeaderChange):
                    self._voter_ids = tuple(sorted(control.voters))


def checkpoints_of(fs: FileSystem, partition: Path) -> list[tuple[SnapshotId, CheckpointReader]]:
    """Return a partition directory's sealed checkpoints, ascending; the bootstrap one first."""
    found = []
    for name in fs.list_directory(partition):
        parsed = parse_name(name)
        if parsed is not None and parsed[1] is FileState.SEALED:
            found.append((parsed[0], CheckpointReader(partition / name, fs=fs)))
    return sorted(found, key=lambda each: (each[0].offset, each[0].epoch))


def batches_of(log: ReadOnlyLog, offset: int) -> Iterator[bytes]:
    """Yield the log's batches from ``offset`` on, several at a time."""
    while offset < log.end.offset:
        data = log.read(offset, _READ_BYTES)
        yield data
        offset = scan_batches(data, verify_crc=False)[-1].end_offset
