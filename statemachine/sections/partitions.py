"""The state of one partition and the effect of a change record on it.

See: docs/reference/record-types.md (Metadata records).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple, TypeVar, cast

from quorum.types import NO_NODE, NodeId, Uuid
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
_new_tuple = tuple.__new__


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
    # A million of them when a checkpoint is loaded: without calls for what is known already.
    known = _shared.get
    replicas, isr, directories = record.replicas, record.isr, record.directories
    same = isr == replicas
    replicas = known(replicas) or _share(replicas)
    return _new_tuple(
        PartitionState,
        (
            replicas,
            replicas if same else known(isr) or _share(isr),
            record.removing_replicas,
            record.adding_replicas,
            record.leader,
            record.leader_recovery_state,
            record.leader_epoch,
            record.partition_epoch,
            known(directories) or _share_directories(directories),
            record.eligible_leader_replicas or (),
            record.last_known_elr or (),
        ),
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
    replicas, isr, directories = change.replicas, change.isr, change.directories
    removing, adding = change.removing_replicas, change.adding_replicas
    elr = change.eligible_leader_replicas
    last_known = change.last_known_elr
    recovery = change.leader_recovery_state
    # Nearly every record of a log is such a change: without calls for what is known already.
    return _new_tuple(
        PartitionState,
        (
            state.replicas if replicas is None else _share(replicas),
            state.isr if isr is None else _shared.get(isr) or _share(isr),
            state.removing if removing is None else removing,
            state.adding if adding is None else adding,
            change.leader if leader_named else state.leader,
            state.leader_recovery_state if recovery == RECOVERY_STATE_UNCHANGED else recovery,
            state.leader_epoch + 1 if leader_named else state.leader_epoch,
            state.partition_epoch + 1,
            state.directories if directories is None else _share_directories(directories),
            state.elr if elr is None else elr,
            state.last_known_elr if last_known is None else last_known,
        ),
    )


_EPOCHS_AT = PartitionState._fields.index("leader_epoch")
_BEHIND_EPOCHS = _EPOCHS_AT + 2


def alike_key(state: PartitionState) -> tuple[object, ...]:
    """Return everything but the two epochs: equal for partitions that change alike."""
    return state[:_EPOCHS_AT] + state[_BEHIND_EPOCHS:]


ISR_INDEX, LEADER_INDEX, ELR_INDEX = range(3)


class IndexMove(NamedTuple):
    """A partition enters or leaves a broker's set in one of the indexes by broker."""

    kind: int
    """``ISR_INDEX``, ``LEADER_INDEX`` or ``ELR_INDEX``."""
    broker_id: NodeId
    enters: bool


class AlikeChange:
    """One change of every partition in the same state but for its two epochs."""

    __slots__ = (
        "_before_epochs",
        "_behind_epochs",
        "_change",
        "_leader_epochs",
        "_moves",
        "_old",
    )

    def __init__(self, old: PartitionState, change: PartitionChangeRecord) -> None:
        """``change`` is that of any partition in the state ``old``; it names none."""
        new = changed_state(old, change)
        self._change = change
        self._before_epochs = new[:_EPOCHS_AT]
        self._behind_epochs = new[_BEHIND_EPOCHS:]
        self._leader_epochs = new.leader_epoch - old.leader_epoch
        self._old = old
        self._moves: tuple[IndexMove, ...] | None = None

    @property
    def moves(self) -> tuple[IndexMove, ...]:
        """What changes in the indexes by broker. Computed when asked for: a reader has no index."""
        if self._moves is None:
            old, new = self._old, self.applied_to(self._old)
            self._moves = (
                *_moves(ISR_INDEX, old.isr, new.isr),
                *_moves(LEADER_INDEX, (old.leader,), (new.leader,)),
                *_moves(ELR_INDEX, old.elr, new.elr),
            )
        return self._moves

    def applied_to(self, state: PartitionState) -> PartitionState:
        """Return the new state of a partition that is in such a state."""
        return _new_tuple(
            PartitionState,
            (
                *self._before_epochs,
                state.leader_epoch + self._leader_epochs,
                state.partition_epoch + 1,
                *self._behind_epochs,
            ),
        )

    def record(self, topic_id: Uuid, index: int) -> PartitionChangeRecord:
        """Return the change of that partition as a record."""
        change = self._change
        return PartitionChangeRecord(
            index,
            topic_id,
            change.isr,
            change.leader,
            change.replicas,
            change.removing_replicas,
            change.adding_replicas,
            change.leader_recovery_state,
            change.directories,
            change.eligible_leader_replicas,
            change.last_known_elr,
        )


def _moves(index: int, old: tuple[int, ...], new: tuple[int, ...]) -> Iterator[IndexMove]:
    for broker in sorted(set(old).symmetric_difference(new)):
        yield IndexMove(index, broker, broker in new)
