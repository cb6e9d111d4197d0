"""Positions of groups in the log: as messages to commit, and as values that were fetched."""

from __future__ import annotations

from typing import NamedTuple

from quorum.log_position import EpochEntry, LogPosition
from quorum.v1 import commands_pb2 as wire
from quorum.v1.metadata_pb2 import CommittedPosition as PositionMessage

COMMITTED_EPOCHS_MAX = 128
"""Epochs of a position that are committed, the newest; servers take no more."""


class CommittedPosition(NamedTuple):
    """The position that a group committed last."""

    position: LogPosition
    metadata: str
    commit_timestamp_ms: int
    """When it was committed, milliseconds since 1970; it expires some time after."""


def position_message(group: str, position: LogPosition, metadata: str) -> wire.CommitPosition:
    """Return the command that commits a position."""
    message = wire.CommitPosition(
        group=group,
        offset=position.offset,
        leader_epoch=position.epoch,
        log_digest=position.log_digest,
        log_incarnation=position.log_incarnation,
        metadata=metadata,
    )
    for entry in position.epochs[-COMMITTED_EPOCHS_MAX:]:
        message.epochs.add(
            epoch=entry.epoch, start_offset=entry.start_offset, log_digest=entry.log_digest
        )
    return message


def committed(message: PositionMessage, newest_incarnation: int) -> CommittedPosition | None:
    """Return what a server of that incarnation answered; None for a group without a position."""
    if message.offset < 0:
        return None
    position = LogPosition(
        message.offset,
        message.leader_epoch,
        tuple(EpochEntry(e.epoch, e.start_offset, e.log_digest) for e in message.epochs),
        message.log_digest,
        message.log_incarnation,
        newest_incarnation,
    )
    return CommittedPosition(position, message.metadata, message.commit_timestamp_ms)
