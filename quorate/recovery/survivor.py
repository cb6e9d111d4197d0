"""What one surviving data directory holds. Nothing is written, and no lock is taken."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from quorate.adoption.contents import batches_of, checkpoints_of
from quorate.recovery.errors import RecoveryRefusedError
from quorate.recovery.newest_epoch import newest_record_epoch
from quorate.replica.checkpoint_position import contradiction
from quorum.batch import iterate_records, scan_batches
from quorum.control import decode_control
from quorum.control_records import LeaderChange, Voters
from quorum.errors import SnapshotCorruptError
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.log.identity import load_identity
from quorum.log.layout import partition_directory
from quorum.log.readonly import ReadOnlyLog, open_readonly
from quorum.ports import FileSystem
from quorum.types import (
    BOOTSTRAP_SNAPSHOT_ID,
    ZERO_UUID,
    ElectionState,
    Epoch,
    EpochStart,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
    Uuid,
)


@dataclass(frozen=True, slots=True)
class Survivor:
    """One directory. Offsets are ends, exclusive."""

    data_dir: Path
    cluster_id: str
    key: ReplicaKey
    start_offset: int
    """The log begins here; a checkpoint has what came before, all of it committed."""
    end: OffsetAndEpoch
    """The end of the log, and the epoch of its last record."""
    committed_end: int
    """Everything below is known to be committed."""
    epochs: tuple[EpochStart, ...]
    """Where each epoch begins in the log that is left."""
    voters: tuple[ReplicaKey, ...]
    """By the newest voters record, or, where voters are configured, as the newest leader named
    them: then without directory ids."""
    newest_epoch: Epoch = 0
    """The newest that this disk knows, by its records or by its election state."""
    incarnation: LogIncarnation = FIRST_INCARNATION
    """That of the log."""
    named_incarnation_id: Uuid = ZERO_UUID
    """That of the directory. Unless they are equal, a recovery of it was interrupted, or its node
    has not copied the whole history yet."""
    vote_floor: OffsetAndEpoch | None = None
    """This disk has lost records that it had acknowledged, up to here at most."""
    disqualified: str = ""
    """Why this disk must not vote; empty if it may."""
    checkpoint_problems: tuple[str, ...] = ()
    """Checkpoints that are damaged or not of their position; they prove nothing."""
    torn_tail: str = ""
    """What a crash cut off at the end of the log; never acknowledged. Empty if nothing."""


def read_survivor(fs: FileSystem, data_dir: Path) -> Survivor:
    """Read a directory.

    Raises:
        RecoveryRefusedError: Its log is damaged.
        IdentityError: It is not formatted, or its identity is damaged.
        CorruptBatchError: A voters record is malformed.
        StorageError: A file cannot be read.
    """
    identity = load_identity(fs, data_dir)
    log = open_readonly(data_dir, fs)
    try:
        if log.damage is not None:
            raise RecoveryRefusedError(
                f"{data_dir}: the log is damaged: {log.damage}; leave this directory out, or start "
                "its node once beside the others: it sets the damage aside"
            )
        problems: list[str] = []
        committed, voters, incarnation = _committed_and_voters(fs, data_dir, log, problems)
        election = log.election
        newest = newest_record_epoch(fs, data_dir, log, election or ElectionState())
        return Survivor(
            data_dir,
            identity.cluster_id,
            ReplicaKey(identity.node_id, identity.directory_id),
            log.start.offset,
            log.end,
            committed,
            log.epochs,
            voters,
            newest if election is None else max(newest, election.epoch),
            incarnation,
            identity.log_incarnation_id,
            None if election is None else election.vote_floor,
            "" if election is None else election.disqualified,
            tuple(problems),
            log.torn_tail,
        )
    finally:
        log.close()


def _committed_and_voters(
    fs: FileSystem, data_dir: Path, log: ReadOnlyLog, problems: list[str]
) -> tuple[int, tuple[ReplicaKey, ...], LogIncarnation]:
    incarnation = FIRST_INCARNATION
    committed = min(log.high_watermark or 0, log.end.offset)
    voters: tuple[ReplicaKey, ...] = ()
    named: tuple[NodeId, ...] = ()
    for snapshot_id, reader in checkpoints_of(fs, partition_directory(data_dir)):
        # One that is damaged, or that is under another name, proves nothing.
        try:
            head = reader.head()
        except SnapshotCorruptError as error:
            problems.append(str(error))
            continue
        problem = contradiction(snapshot_id, head, log)
        if problem or snapshot_id.offset > log.end.offset:
            problems.append(f"checkpoint {snapshot_id}: {problem or 'it is behind the log'}")
            continue
        if head.voters:
            voters = tuple(each.key for each in head.voters)
            incarnation = head.incarnation
        if snapshot_id != BOOTSTRAP_SNAPSHOT_ID:
            committed = max(committed, snapshot_id.offset)
    for data in batches_of(log, log.start.offset):
        for header in scan_batches(data, verify_crc=False):
            for record in iterate_records(data, header) if header.is_control else ():
                control = decode_control(record)
                if isinstance(control, Voters):
                    voters = tuple(each.key for each in control.voters)
                    incarnation = control.incarnation
                elif isinstance(control, LeaderChange):
                    named = control.voters
    return committed, voters or tuple(ReplicaKey(each) for each in named), incarnation
