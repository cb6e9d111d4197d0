"""Begin the next incarnation of a log, in the directory of a stopped node.

The node becomes the only voter. Three steps, each durable before the next one, so that a crash
leaves a directory of the former incarnation, one that a server refuses as unfinished, or one of the
new incarnation. Repeating the call finishes what is unfinished, and changes nothing in a
finished one.

See: ADR 65; quorate/recovery/DESIGN.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from quorate.recovery.errors import RecoveryRefusedError
from quorate.replica.checkpoint_position import contradiction
from quorate.replica.log_incarnation import is_unfinished
from quorate.replica.stale_quorum_state import check_newest
from quorate.replica.voters_on_disk import CheckpointVoters, voters_in_force
from quorum.batch import scan_batches
from quorum.control import encode_control_batch
from quorum.control_incarnation import INCARNATION_REPORT_TAG
from quorum.control_records import KRaftVersion, LeaderChange, Voters
from quorum.core.messages.received_records import VotersAt
from quorum.incarnation import LogIncarnation
from quorum.log.election_store import ElectionFile
from quorum.log.identity import MetaProperties, write_identity
from quorum.log.layout import partition_directory
from quorum.log.quarantine_mark_file import read_quarantine_mark
from quorum.log.recovery import open_log
from quorum.log.segmented_log import SegmentedLog
from quorum.ports import Clock, FileSystem
from quorum.types import (
    BOOTSTRAP_SNAPSHOT_ID,
    EPOCH_MAX,
    ZERO_UUID,
    ElectionState,
    Endpoint,
    Epoch,
    OffsetAndEpoch,
    ReplicaKey,
    Uuid,
    Voter,
)
from snapshot.store import DirectorySnapshotStore

EPOCHS_SKIPPED = 1_000
"""Between the newest epoch that is known anywhere and that of the incarnation. Lost voters may have
held elections that nobody who is left knows of; their epochs must not name other records."""
_KRAFT_VERSION = 1


@dataclass(frozen=True, slots=True)
class Beginning:
    """What the new incarnation is."""

    incarnation_id: Uuid
    """Drawn at random by the caller."""
    kept_end: int
    """Everything below is surely as in the former incarnation."""
    newest_epoch: Epoch
    """The newest epoch that is known on any surviving disk, this one included."""
    endpoints: tuple[Endpoint, ...] = ()
    """Where peers reach the node; empty: as in the voters record of its log."""
    report: Mapping[str, object] | None = None
    """Why it begins, as JSON has it; becomes part of the log."""


@dataclass(frozen=True, slots=True)
class Begun:
    """A directory that belongs to the new incarnation."""

    incarnation: LogIncarnation
    end: OffsetAndEpoch
    """End of the log."""
    removed: tuple[ReplicaKey, ...]
    """Tombstones of the voter set."""
    was_unfinished: bool
    """An earlier call had begun it; nothing but the rest of it was done."""


def begin(
    fs: FileSystem, data_dir: Path, identity: MetaProperties, beginning: Beginning, clock: Clock
) -> Begun:
    """Begin an incarnation in ``data_dir``, whose node must not run, and write ``meta.properties``.

    ``identity`` is that of the directory, which has it already unless it is being restored.

    Durability: everything is on disk when this returns.

    Raises:
        RecoveryRefusedError: The log waits for a repair, no epoch is left, or no endpoint is known;
            nothing was changed.
        LogDamagedError, CorruptBatchError, SnapshotCorruptError: The directory is damaged.
        ElectionStateError: ``quorum-state`` cannot be trusted.
        StorageError: The disk failed.
    """
    partition = partition_directory(data_dir)
    if read_quarantine_mark(fs, partition) is not None:
        raise RecoveryRefusedError(
            f"{data_dir}: a part of the log is to be set aside; start the node once, or leave this "
            "directory out"
        )
    election = ElectionFile(fs, partition, identity.directory_id)
    state = election.load()
    check_newest(fs, partition, state, identity.directory_id)
    log, voters, last_timestamp = _opened(fs, data_dir, identity, state, clock)
    try:
        found = voters.incarnation
        if found.id == beginning.incarnation_id == identity.log_incarnation_id:
            return Begun(found, log.end, voters.removed, was_unfinished=True)
        begun = is_unfinished(identity.log_incarnation_id, found)
        if not begun:
            found = _append(
                log, election, state, identity, voters, beginning, clock, last_timestamp
            )
            removed = _tombstones(voters, identity)
        else:
            removed = voters.removed
        log.store_high_watermark(log.end.offset)
        end = log.end
    finally:
        log.close()
    write_identity(fs, data_dir, replace(identity, log_incarnation_id=found.id))
    return Begun(found, end, removed, was_unfinished=begun)


def _opened(
    fs: FileSystem, data_dir: Path, identity: MetaProperties, state: ElectionState, clock: Clock
) -> tuple[SegmentedLog, VotersAt, int]:
    """Open the log, without its torn tail; return it, the voters in force and its last time."""
    partition = partition_directory(data_dir)
    snapshots = DirectorySnapshotStore(fs, partition, clock)
    ids = snapshots.list()
    log, _ = open_log(
        fs,
        partition,
        snapshots=tuple(each for each in ids if each != BOOTSTRAP_SNAPSHOT_ID),
        snapshot_digest=snapshots.log_digest,
        epoch_max=state.epoch,
        owner=identity.directory_id,
    )
    try:
        newest, checkpoint, last_timestamp = None, CheckpointVoters(), 0
        for snapshot_id in reversed(ids):
            head = snapshots.reader(snapshot_id).head()
            problem = contradiction(snapshot_id, head, log)
            if problem:
                raise RecoveryRefusedError(
                    f"{data_dir}: checkpoint {snapshot_id}: {problem}; start the node once, it "
                    "sets the file aside"
                )
            last_timestamp = max(last_timestamp, head.last_contained_log_timestamp)
            if head.voters or head.kraft_version:
                newest, checkpoint = snapshot_id, CheckpointVoters.of(snapshot_id, head)
                break
        history, _ = voters_in_force(log, newest, checkpoint, ())
        if log.end.offset > log.start.offset:
            last = scan_batches(log.read(log.end.offset - 1, 1), verify_crc=False)[-1]
            last_timestamp = max(last_timestamp, last.max_timestamp)
    except BaseException:
        log.close()
        raise
    return log, history[-1] if history else VotersAt(-1, ()), last_timestamp


def _append(
    log: SegmentedLog,
    election: ElectionFile,
    state: ElectionState,
    identity: MetaProperties,
    voters: VotersAt,
    beginning: Beginning,
    clock: Clock,
    last_timestamp: int,
) -> LogIncarnation:
    """Store the vote, and append the batch that begins the incarnation."""
    me = ReplicaKey(identity.node_id, identity.directory_id)
    epoch = max(beginning.newest_epoch, log.end.epoch) + EPOCHS_SKIPPED
    if state.epoch > epoch:
        epoch = state.epoch + EPOCHS_SKIPPED
    if epoch > EPOCH_MAX:
        raise RecoveryRefusedError(
            f"no epoch is left: {epoch - EPOCHS_SKIPPED} is known and {EPOCH_MAX} is the last one"
        )
    known = [each.endpoints for each in voters.voters if each.key.matches(me)]
    endpoints = beginning.endpoints or next(iter(known), ())
    if not endpoints:
        raise RecoveryRefusedError(
            f"the log does not know where peers reach node {me.id}: name its address (--endpoint)"
        )
    data = json.dumps(beginning.report or {}, separators=(",", ":")).encode()
    former = voters.incarnation
    incarnation = LogIncarnation(
        former.number + 1,
        beginning.incarnation_id,
        former.id,
        OffsetAndEpoch(beginning.kept_end, _epoch_before(log, beginning.kept_end)),
        hashlib.sha256(data).digest(),
    )
    base = log.end.offset
    batch = encode_control_batch(
        [
            LeaderChange(me.id, (me.id,), (me.id,), ((INCARNATION_REPORT_TAG, data),)),
            KRaftVersion(_KRAFT_VERSION),
            Voters(
                (Voter(me, endpoints),),
                removed=_tombstones(voters, identity),
                incarnation=incarnation,
            ),
        ],
        base_offset=base,
        epoch=epoch,
        timestamp=max(clock.wall_ms(), last_timestamp),
    )
    # The epoch is durable before its records; the vote, so that nobody else leads it.
    election.save(ElectionState(epoch, voted=me))
    log.append(batch, base_offset=base, end_offset=base + 3)
    log.flush()
    return incarnation


def _tombstones(voters: VotersAt, identity: MetaProperties) -> tuple[ReplicaKey, ...]:
    """Return all former voters but this node; a voter without a known disk cannot be named."""
    former = {*voters.removed, *(each.key for each in voters.voters)}
    return tuple(
        sorted(
            (key for key in former if key.directory_id not in (ZERO_UUID, identity.directory_id)),
            key=lambda key: (key.id, key.directory_id),
        )
    )


def _epoch_before(log: SegmentedLog, offset: int) -> Epoch:
    """Return the epoch of the record before ``offset``, as far as the log goes back."""
    found = [each.epoch for each in log.epochs if each.start_offset < offset]
    return found[-1] if found else log.start.epoch
