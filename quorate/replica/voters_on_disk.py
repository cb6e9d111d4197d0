"""The voter sets that a directory's files put in force: of its checkpoint, and of its log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from quorum.batch import iterate_records, scan_batches
from quorum.control import decode_control
from quorum.control_records import KRaftVersion, Voters
from quorum.core.messages.received_records import VotersAt
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.log.segmented_log import SegmentedLog
from quorum.types import ReplicaKey, SnapshotId, Voter
from snapshot.format import CheckpointHead

_SCAN_BYTES = 4 << 20


@dataclass(slots=True)
class CheckpointVoters:
    """The voters of a checkpoint, and what is in force with them."""

    voters: tuple[Voter, ...] = ()
    kraft_version: int = 0
    offset: int = -1
    removed: tuple[ReplicaKey, ...] = ()
    incarnation: LogIncarnation = FIRST_INCARNATION

    @classmethod
    def of(cls, snapshot_id: SnapshotId, head: CheckpointHead) -> CheckpointVoters:
        """Return those of the checkpoint with this head."""
        return cls(
            head.voters, head.kraft_version, snapshot_id.offset - 1, head.removed, head.incarnation
        )


def voters_in_force(
    log: SegmentedLog,
    loaded: SnapshotId | None,
    checkpoint: CheckpointVoters,
    static_voters: tuple[Voter, ...],
) -> tuple[tuple[VotersAt, ...], int]:
    """Every voters record from the loaded checkpoint on, and the finalised kraft.version."""
    history: list[VotersAt] = []
    kraft_version = checkpoint.kraft_version
    if checkpoint.voters:
        voters, removed = checkpoint.voters, checkpoint.removed
        history.append(VotersAt(checkpoint.offset, voters, removed, checkpoint.incarnation))
    elif static_voters:
        history.append(VotersAt(-1, static_voters))
    begin = log.start.offset if loaded is None else max(loaded.offset, log.start.offset)
    for offset, control in control_records(log, begin):
        if isinstance(control, Voters):
            history.append(VotersAt(offset, control.voters, control.removed, control.incarnation))
        elif isinstance(control, KRaftVersion):
            kraft_version = control.version
    return tuple(history), kraft_version


def control_records(log: SegmentedLog, offset: int) -> Iterator[tuple[int, object]]:
    """Yield each control record from ``offset`` on, with its offset."""
    end_offset = log.end.offset
    while offset < end_offset:
        data = log.read(offset, _SCAN_BYTES)
        headers = scan_batches(data, verify_crc=False)
        for header in headers:
            if header.is_control:
                for record in iterate_records(data, header):
                    yield record.offset, decode_control(record)
        offset = headers[-1].end_offset
