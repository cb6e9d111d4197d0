"""The state of one partition and the effect of a change record on it.

See: docs/reference/record-types.md (Metadata records).
"""

from __future__ import annotations

from typing import Any, NamedTuple, TypeVar, cast

from quorum.types import NO_NODE, Uuid
from statemachine.records import (
    LEADER_UNCHANGED,
    RECOVERED,
    RECOVERY_STATE_UNCHANGED,
    PartitionChangeRecord,
    PartitionRecord,
)

T = TypeVar("T")


class PartitionState(NamedTuple):
    """Everything the image knows about a partition.

    A named tuple, because loading a checkpoint may create a million of them.
    """

    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    removing: tuple[int, ...] = ()
    adding: tuple[int, ...] = ()
    leader: int = NO_NODE
    leader_recovery_state: int = RECOVERED
    leader_epoch: int = 0
    partition_epoch: int = 0
    directories: tuple[Uuid, ...] = ()
    elr: tuple[int, ...] = ()
    last_known_elr: tuple[int, ...] = ()

    def directory(self, replica: int) -> Uuid | None:
        """Return the directory in which that replica keeps the partition; None if not recorded."""
        if len(self.directories) != len(self.replicas) or replica not in self.replicas:
            return None
        return self.directories[self.replicas.index(replica)]


_SHARED_MAX = 1 << 16
_shared: dict[Any, Any] = {}


def _share(value: T) -> T:
    """Return an equal value that many partitions have in common.

    Each decoded record brings copies of its own, but a cluster places its replicas in far fewer
    ways than it has partitions, and in a few directories.
    """
    if len(_shared) >= _SHARED_MAX:
        _shared.clear()
    return cast("T", _shared.setdefault(value, value))


def _share_directories(directories: tuple[Uuid, ...]) -> tuple[Uuid, ...]:
    known: tuple[Uuid, ...] | None = _shared.get(directories)
    # With many racks the combinations are many; the directories in them are not.
    return _share(tuple(map(_share, directories))) if known is None else known


def state_of(record: PartitionRecord) -> PartitionState:
    """Return the state that a full partition record describes."""
    replicas = _share(record.replicas)
    isr = record.isr
    return PartitionState(
        replicas,
        replicas if isr == replicas else _share(isr),
        record.removing_replicas,
        record.adding_replicas,
        record.leader,
        record.leader_recovery_state,
        record.leader_epoch,
        record.partition_epoch,
        _share_directories(record.directories),
        record.eligible_leader_replicas or (),
        record.last_known_elr or (),
    )


def record_of(topic_id: Uuid, index: int, state: PartitionState) -> PartitionRecord:
    """Return the full partition record of a state; the reverse of ``state_of``.

    Empty ELR fields become null, their default, so that a partition without them
    needs no later record version.
    """
    return PartitionRecord(
        index,
        topic_id,
        state.replicas,
        state.isr,
        state.removing,
        state.adding,
        state.leader,
        state.leader_recovery_state,
        state.leader_epoch,
        state.partition_epoch,
        state.directories,
        state.elr or None,
        state.last_known_elr or None,
    )


def changed_state(state: PartitionState, change: PartitionChangeRecord) -> PartitionState:
    """Return the changed state: partition epoch + 1, leader epoch + 1 if a leader is named."""
    leader_named = change.leader != LEADER_UNCHANGED
    elr = change.eligible_leader_replicas
    last_known = change.last_known_elr
    recovery = change.leader_recovery_state
    return PartitionState(
        state.replicas if change.replicas is None else _share(change.replicas),
        state.isr if change.isr is None else _share(change.isr),
        state.removing if change.removing_replicas is None else change.removing_replicas,
        state.adding if change.adding_replicas is None else change.adding_replicas,
        change.leader if leader_named else state.leader,
        state.leader_recovery_state if recovery == RECOVERY_STATE_UNCHANGED else recovery,
        state.leader_epoch + 1 if leader_named else state.leader_epoch,
        state.partition_epoch + 1,
        state.directories if change.directories is None else _share_directories(change.directories),
        state.elr if elr is None else elr,
        state.last_known_elr if last_known is None else last_known,
    )
