"""Opens a data directory: reads and repairs its files, and returns a replica's initial state.

The order of the steps makes it safe. Checkpoints are verified first, because the log may only start
where an intact checkpoint ends. What is damaged is quarantined, never deleted, and a *vote floor*
is stored before anything that this replica may have acknowledged leaves its log, so that it
helps no candidate without those records to be elected.

Used alike by the server and the simulator; every file is reached through ``FileSystem``.

See: ADR 7 and 20; requirements 630.13-630.15, 279.5.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from quorate.replica.checkpoint_position import contradiction
from quorate.replica.log_incarnation import check_incarnation
from quorate.replica.quarantined_log import floor_store, quarantine_log
from quorate.replica.record_codec import check_codec, value_of_checkpoints, value_of_log
from quorate.replica.stale_quorum_state import check_newest
from quorate.replica.unknown_end import floor_for_unknown_end
from quorate.replica.voters_on_disk import CheckpointVoters, voters_in_force
from quorum.batch import iterate_records, scan_batches
from quorum.core.contract.local_events import DurableState, PartialDownload
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
from snapshot.download import FoundDownload
from snapshot.store import DirectorySnapshotStore
from statemachine.codec import DecodeRecord, decode_record
from statemachine.machine import StateMachine

_DAMAGES_MAX = 100
"""Each quarantine shortens the log, so more rounds than this mean that we are wrong."""

ScanProgress: TypeAlias = Callable[[int, int], None]


@dataclass(slots=True)
class BootReport:
    """The findings and repairs of opening a directory, for the log and for ``/readyz``."""

    recovery: RecoveryReport = field(default_factory=RecoveryReport)
    losses: list[tuple[LogDamagedError, Loss]] = field(default_factory=list)
    corrupt_snapshots: list[tuple[SnapshotId, str]] = field(default_factory=list)
    loaded_snapshot: SnapshotId | None = None
    bootstrap_values: tuple[bytes, ...] = ()
    """Data records of the bootstrap checkpoint, for the first leader to copy into the log."""
    repaired: list[str] = field(default_factory=list)
    """Names of side files that were missing, damaged or behind the log, and were rewritten."""
    removed: tuple[str, ...] = ()
    """Names of unfinished and retired checkpoints that were deleted."""
    download: FoundDownload | None = None
    """The partial download that was found."""


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
        """The id and directory id of this replica."""
        return ReplicaKey(self.identity.node_id, self.identity.directory_id)


def open_stores(  # noqa: PLR0913 - what surrounds a directory, by keyword
    fs: FileSystem,
    data_dir: Path,
    *,
    node_id: NodeId | None,
    log_config: LogConfig,
    snapshot_config: SnapshotConfig,
    clock: Clock,
    static_voters: tuple[Voter, ...] = (),
    bootstrap_without: tuple[NodeId, ...] = (),
    progress: ScanProgress | None = None,
    decode: DecodeRecord = decode_record,
    uses_native_codec: bool | None = None,
) -> Stores:
    """Open, recover and load; nothing runs yet.

    ``static_voters`` hold until a voters record is found. ``progress`` gets the bytes of log
    scanned and in all. Unless ``uses_native_codec`` is None, records must be in that codec.

    Raises:
        ConfigError: The directory's records are in the other codec.
        IdentityError: Not formatted, for another node, or with an unfinished recovery.
        ElectionStateError: ``quorum-state`` cannot be trusted.
        StorageError: The disk failed.
        UnknownRecordError: A committed record is of a newer release.
    """
    identity = load_identity(fs, data_dir, node_id=node_id)
    directory = partition_directory(data_dir)
    fs.make_directory(directory)
    report, owner = BootReport(), identity.directory_id
    election = _open_election(fs, directory, owner)
    snapshots = DirectorySnapshotStore(fs, directory, clock, snapshot_config)
    report.removed = snapshots.clean_up()
    _admit_losses(fs, directory, owner, snapshots, election, report)
    machine, found, log = _load(
        snapshots,
        report,
        decode,
        lambda value: check_codec(directory, value, uses_native_codec=uses_native_codec),
        lambda: _open_log(fs, directory, owner, log_config, snapshots, election, report, progress),
    )
    usable, taken = report.loaded_snapshot, snapshots.list()
    _check_reaches(log, usable, directory)
    voters, kraft_version = voters_in_force(log, usable, found, static_voters)
    check_incarnation(data_dir, identity.log_incarnation_id, voters)
    state = DurableState(
        election=election.load(),
        log_start=log.start,
        log_end=log.end,
        epochs=log.epochs,
        snapshots=taken,
        voters=voters,
        high_watermark=report.recovery.high_watermark,
        snapshot_sizes={each: snapshots.size(each) for each in taken},
        snapshot_ages_ms={each: _age_ms(fs, snapshots.path(each), clock) for each in taken},
        bootstrap_without=bootstrap_without,
        download=_found_download(snapshots, report),
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


def _admit_losses(
    fs: FileSystem,
    directory: Path,
    owner: Uuid,
    snapshots: DirectorySnapshotStore,
    election: ElectionFile,
    report: BootReport,
) -> None:
    """Store the vote floor of lost records before anything is read; apply a quarantine mark."""
    report.losses += floor_for_unknown_end(fs, directory, election, owner)
    report.losses += quarantine_log(fs, directory, snapshots, election, owner, report.repaired)


def _open_election(fs: FileSystem, directory: Path, owner: Uuid) -> ElectionFile:
    election = ElectionFile(fs, directory, owner)
    if not election.exists():
        raise ElectionStateError(
            f"{QUORUM_STATE_NAME} is missing, so this replica may have forgotten a vote: put the "
            "file back, or format an empty directory (a new directory id) and let it catch up",
            directory,
        )
    check_newest(fs, directory, election.load(), owner)
    return election


def _load_checkpoints(
    snapshots: DirectorySnapshotStore, machine: StateMachine, report: BootReport
) -> CheckpointVoters:
    """Load the newest intact checkpoint; quarantine those that are damaged."""
    report.loaded_snapshot = None
    found = CheckpointVoters()
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
            found = CheckpointVoters.of(snapshot_id, head)
    return found


def _load(
    snapshots: DirectorySnapshotStore,
    report: BootReport,
    decode: DecodeRecord,
    check_value: Callable[[bytes | None], None],
    open_checked_log: Callable[[], SegmentedLog],
) -> tuple[StateMachine, CheckpointVoters, SegmentedLog]:
    """Load the newest checkpoint that the log beside it does not contradict, and open the log.

    ``check_value`` raises for a first record in the other codec.
    """
    while True:
        machine = StateMachine(decode=decode)
        found = _load_checkpoints(snapshots, machine, report)
        # Opening the log writes. A directory that is refused because of its checkpoint stays
        # unchanged.
        value = value_of_checkpoints(snapshots, report.loaded_snapshot, report.bootstrap_values)
        check_value(value)
        log = open_checked_log()
        if not _set_contradictions_aside(snapshots, log, report):
            check_value(value or value_of_log(log))
            return machine, found, log
        log.close()


def _set_contradictions_aside(
    snapshots: DirectorySnapshotStore, log: SegmentedLog, report: BootReport
) -> bool:
    """Quarantine checkpoints that the log contradicts; return whether there was one."""
    wrong = [
        (snapshot_id, problem)
        for snapshot_id in snapshots.list()
        if (problem := contradiction(snapshot_id, snapshots.reader(snapshot_id).head(), log))
    ]
    for snapshot_id, problem in wrong:
        snapshots.quarantine(snapshot_id, problem)
    report.corrupt_snapshots += wrong
    return bool(wrong)


def _data_values(batches: Iterator[bytes]) -> Iterator[bytes]:
    for data in batches:
        for header in scan_batches(data, verify_crc=False):
            if not header.is_control:
                for record in iterate_records(data, header):
                    yield record.value or b""


def _open_log(
    fs: FileSystem,
    directory: Path,
    owner: Uuid,
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
                owner=owner,
                rebuilt=report.repaired,
                progress=progress,
            )
        except LogDamagedError as damage:
            loss = quarantine(
                fs,
                directory,
                damage,
                store_vote_floor=floor_store(election),
                epoch_max=election.load().epoch,
                owner=owner,
                rebuilt=report.repaired,
            )
            report.losses.append((damage, loss))
        else:
            return log
    raise report.losses[-1][0]


def _check_reaches(log: SegmentedLog, loaded: SnapshotId | None, directory: Path) -> None:
    """Cannot fail after recovery: a newer checkpoint replaces the log."""
    if loaded is not None and loaded.offset > log.end.offset:
        problem = f"checkpoint {loaded} is beyond the log end {log.end}"
        raise SnapshotCorruptError(problem, directory)


def _age_ms(fs: FileSystem, path: Path, clock: Clock) -> int:
    """Return the age of a file's last change, 0 if unknown.

    By the wall clock, which may have been set since: the log is then trimmed sooner or later than
    the lag time says, and a replica that is left behind fetches the checkpoint.
    """
    modified_ms = fs.modified_ms(path)
    return 0 if modified_ms is None else max(0, clock.wall_ms() - modified_ms)


def _found_download(
    snapshots: DirectorySnapshotStore, report: BootReport
) -> PartialDownload | None:
    """Return the partial download, verified and ready to continue."""
    found = report.download = snapshots.recover_download()
    if found is None or not found.size_bytes:
        return None
    return PartialDownload(found.snapshot_id, found.size_bytes)


def _last_timestamp(log: SegmentedLog) -> int:
    end = log.end.offset
    if end == log.start.offset:
        return 0
    return scan_batches(log.read(end - 1, 1), verify_crc=False)[-1].max_timestamp


def position_of(stores: Stores) -> OffsetAndEpoch:
    """The position the loaded image represents."""
    provenance = stores.machine.image.provenance
    return OffsetAndEpoch(provenance.end_offset, provenance.epoch)
