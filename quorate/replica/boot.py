"""Opening a data directory: from files, in whatever state, to what a replica starts from.

The order is the safety argument. Checkpoints are proven first, because the log may only start
where a sound checkpoint ends. What is damaged is set aside, never deleted, and a *vote floor*
is stored before anything that this replica may have acknowledged leaves its log, so that it
helps nobody to be elected without those records.

Used alike by the server and the simulator; every file is reached through ``FileSystem``.

See: ADR 7, sections 5.2 and 5.4; requirements 630.13-630.15, 279.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from quorate.replica.condemned import floor_store, set_aside_condemned
from quorate.replica.older_election import check_newest
from quorate.replica.vanished import floor_for_vanished
from quorum.batch import iterate_records, scan_batches
from quorum.control import decode_control
from quorum.control_records import KRaftVersion, Voters
from quorum.core.notices import DurableState
from quorum.core.received_records import VotersAt
from quorum.errors import ElectionStateError, LogDamagedError, SnapshotCorruptError
from quorum.log.config import LogConfig
from quorum.log.damage import Loss, quarantine
from quorum.log.election_store import ElectionFile
from quorum.log.identity import MetaProperties, load_identity
from quorum.log.layout import QUORUM_STATE_NAME, partition_directory
from quorum.log.recovery import RecoveryReport, open_log
from quorum.log.segmented_log import SegmentedLog
from quorum.ports import Clock, FileSystem
from quorum.types import (
    BOOTSTRAP_SNAPSHOT_ID,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
    SnapshotId,
    Uuid,
    Voter,
)
from snapshot.config import SnapshotConfig
from snapshot.store import DirectorySnapshotStore
from statemachine.machine import StateMachine

_SCAN_BYTES = 4 << 20
_DAMAGES_MAX = 100
"""Each quarantine shortens the log, so more rounds than this mean that we are wrong."""

ScanProgress: TypeAlias = Callable[[int, int], None]


@dataclass(slots=True)
class BootReport:
    """What opening a directory found and did, for the log and for ``/readyz``."""

    recovery: RecoveryReport = field(default_factory=RecoveryReport)
    losses: list[tuple[LogDamagedError, Loss]] = field(default_factory=list)
    corrupt_snapshots: list[tuple[SnapshotId, str]] = field(default_factory=list)
    loaded_snapshot: SnapshotId | None = None
    bootstrap_values: tuple[bytes, ...] = ()
    """Data records of the bootstrap checkpoint, for the first leader to copy into the log."""


@dataclass(slots=True)
class Stores:
    """An opened data directory. The caller owns it and closes ``log`` and ``snapshots``."""

    identity: MetaProperties
    directory: Path
    log: SegmentedLog
    snapshots: DirectorySnapshotStore
    election: ElectionFile
    machine: StateMachine
    state: DurableState
    kraft_version: int
    last_timestamp: int
    report: BootReport

    @property
    def key(self) -> ReplicaKey:
        """Who this replica is."""
        return ReplicaKey(self.identity.node_id, self.identity.directory_id)


def open_stores(
    fs: FileSystem,
    data_dir: Path,
    *,
    node_id: NodeId | None,
    log_config: LogConfig,
    snapshot_config: SnapshotConfig,
    clock: Clock,
    static_voters: tuple[Voter, ...] = (),
    found_without: tuple[NodeId, ...] = (),
    progress: ScanProgress | None = None,
) -> Stores:
    """Open, recover and load; nothing runs yet.

    ``static_voters`` hold until a voters record is found; epoch 1 does not wait for
    ``found_without``. ``progress`` hears the bytes of log scanned and in all.

    Raises:
        IdentityError: Not formatted, or for another node.
        ElectionStateError: ``quorum-state`` cannot be trusted.
        StorageError: The disk failed.
        UnknownRecordError: A committed record is of a newer release.
    """
    identity = load_identity(fs, data_dir, node_id=node_id)
    directory = partition_directory(data_dir)
    fs.make_directory(directory)
    report = BootReport()
    election = _open_election(fs, directory, identity.directory_id)
    snapshots = DirectorySnapshotStore(fs, directory, clock, snapshot_config)
    snapshots.clean_up()
    machine = StateMachine()
    report.losses += floor_for_vanished(fs, directory, election)
    report.losses += set_aside_condemned(fs, directory, snapshots, election)
    found = _load_checkpoints(snapshots, machine, report)
    log = _open_log(fs, directory, log_config, snapshots, election, report, progress)
    usable = report.loaded_snapshot
    if usable is not None and usable.offset > log.end.offset:
        # Cannot happen after recovery: a newer checkpoint replaces the log.
        problem = f"checkpoint {usable} is beyond the log end {log.end}"
        raise SnapshotCorruptError(problem, directory)
    voters, kraft_version = _voters_in_force(log, usable, found, static_voters)
    taken = snapshots.list()
    state = DurableState(
        election=election.load(),
        log_start=log.start,
        log_end=log.end,
        epochs=log.epochs,
        snapshots=taken,
        voters=voters,
        high_watermark=report.recovery.high_watermark,
        snapshot_sizes={each: snapshots.size(each) for each in taken},
        found_without=found_without,
    )
    return Stores(
        identity=identity,
        directory=directory,
        log=log,
        snapshots=snapshots,
        election=election,
        machine=machine,
        state=state,
        kraft_version=kraft_version,
        last_timestamp=max(_last_timestamp(log), machine.image.provenance.timestamp_ms, 0),
        report=report,
    )


def _open_election(fs: FileSystem, directory: Path, owner: Uuid) -> ElectionFile:
    election = ElectionFile(fs, directory, owner)
    if not election.exists():
        raise ElectionStateError(
            f"{QUORUM_STATE_NAME} is missing, so this replica may have forgotten a vote: put the "
            "file back, or format an empty directory (a new directory id) and let it catch up",
            directory,
        )
    check_newest(fs, directory, election.load())
    return election


@dataclass(slots=True)
class _FromCheckpoint:
    voters: tuple[Voter, ...] = ()
    kraft_version: int = 0
    offset: int = -1
    removed: tuple[ReplicaKey, ...] = ()


def _load_checkpoints(
    snapshots: DirectorySnapshotStore, machine: StateMachine, report: BootReport
) -> _FromCheckpoint:
    """Load the newest sound checkpoint; set those aside that are not."""
    found = _FromCheckpoint()
    for snapshot_id in reversed(snapshots.list()):
        reader = snapshots.reader(snapshot_id)
        try:
            head = reader.head()
            if snapshot_id == BOOTSTRAP_SNAPSHOT_ID:
                report.bootstrap_values = tuple(_data_values(reader.batches()))
            elif report.loaded_snapshot is None:
                machine.load(snapshot_id, reader.batches())
                report.loaded_snapshot = snapshot_id
            else:
                continue
        except SnapshotCorruptError as error:
            snapshots.quarantine(snapshot_id, str(error))
            report.corrupt_snapshots.append((snapshot_id, str(error)))
            continue
        if found.kraft_version == 0 and (head.voters or head.kraft_version):
            found = _FromCheckpoint(
                head.voters, head.kraft_version, snapshot_id.offset - 1, head.removed
            )
    return found


def _data_values(batches: Iterator[bytes]) -> Iterator[bytes]:
    for data in batches:
        for header in scan_batches(data, verify_crc=False):
            if not header.is_control:
                for record in iterate_records(data, header):
                    yield record.value or b""


def _open_log(
    fs: FileSystem,
    directory: Path,
    config: LogConfig,
    snapshots: DirectorySnapshotStore,
    election: ElectionFile,
    report: BootReport,
    progress: ScanProgress | None,
) -> SegmentedLog:
    for _ in range(_DAMAGES_MAX):
        try:
            log, report.recovery = open_log(
                fs,
                directory,
                config,
                snapshots=tuple(
                    taken for taken in snapshots.list() if taken != BOOTSTRAP_SNAPSHOT_ID
                ),
                snapshot_digest=snapshots.log_digest,
                epoch_max=election.load().epoch,
                progress=progress,
            )
        except LogDamagedError as damage:
            loss = quarantine(
                fs,
                directory,
                damage,
                store_vote_floor=floor_store(election),
                epoch_max=election.load().epoch,
            )
            report.losses.append((damage, loss))
        else:
            return log
    raise report.losses[-1][0]


def _voters_in_force(
    log: SegmentedLog,
    loaded: SnapshotId | None,
    checkpoint: _FromCheckpoint,
    static_voters: tuple[Voter, ...],
) -> tuple[tuple[VotersAt, ...], int]:
    """Every voters record from the loaded checkpoint on, and the finalised kraft.version."""
    history: list[VotersAt] = []
    kraft_version = checkpoint.kraft_version
    if checkpoint.voters:
        history.append(VotersAt(checkpoint.offset, checkpoint.voters, checkpoint.removed))
    elif static_voters:
        history.append(VotersAt(-1, static_voters))
    begin = log.start.offset if loaded is None else max(loaded.offset, log.start.offset)
    for offset, control in _controls(log, begin):
        if isinstance(control, Voters):
            history.append(VotersAt(offset, control.voters, control.removed))
        elif isinstance(control, KRaftVersion):
            kraft_version = control.version
    return tuple(history), kraft_version


def _controls(log: SegmentedLog, offset: int) -> Iterator[tuple[int, object]]:
    end_offset = log.end.offset
    while offset < end_offset:
        data = log.read(offset, _SCAN_BYTES)
        headers = scan_batches(data, verify_crc=False)
        for header in headers:
            if header.is_control:
                for record in iterate_records(data, header):
                    yield record.offset, decode_control(record)
        offset = headers[-1].end_offset


def _last_timestamp(log: SegmentedLog) -> int:
    end = log.end.offset
    if end == log.start.offset:
        return 0
    return scan_batches(log.read(end - 1, 1), verify_crc=False)[-1].max_timestamp


def position_of(stores: Stores) -> OffsetAndEpoch:
    """The position the loaded image represents."""
    provenance = stores.machine.image.provenance
    return OffsetAndEpoch(provenance.end_offset, provenance.epoch)
