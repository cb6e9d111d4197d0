"""The explored models: clusters, initial disks and bounds.

The command line's help names them, so nothing of the core is imported before disks are made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from quorum.incarnation import FIRST_INCARNATION
from quorum.types import ElectionState, NodeId, ReplicaKey, SnapshotId, Voter
from simulation.explore.model import LATE_ALL, Model, key_of

if TYPE_CHECKING:
    from simulation.harness.core_disk import Disk, Entry, Log


def _voters(*ids: NodeId) -> tuple[Voter, ...]:
    return tuple(Voter(key_of(node_id)) for node_id in ids)


def _set(*ids: NodeId, removed: tuple[NodeId, ...] = ()) -> Entry:
    """A voters record of epoch 1."""
    gone: tuple[ReplicaKey, ...] = tuple(key_of(node_id) for node_id in removed)
    return (1, (_voters(*ids), gone, FIRST_INCARNATION))


def _fresh(count: int) -> Callable[[], Mapping[NodeId, Disk]]:
    ids = range(1, count + 1)

    def disks() -> Mapping[NodeId, Disk]:
        from simulation.harness.core_disk import Disk

        return {node_id: Disk(first_voters=_voters(*ids)) for node_id in ids}

    return disks


_PLAIN: Entry = (1, None)
_OPENING: Log = (_PLAIN, _PLAIN, _set(1, 2, 3, 4))
"""The first records of the leader of epoch 1: leader change, kraft.version, voters."""


def _alike(log: Log, *ids: NodeId) -> Callable[[], Mapping[NodeId, Disk]]:
    """Return voters that have this log, the first batch of epoch 1, and know no leader."""

    def disks() -> Mapping[NodeId, Disk]:
        from simulation.harness.core_disk import Disk

        return {node_id: Disk(ElectionState(1), _voters(*ids), log) for node_id in ids}

    return disks


_THREE: Log = (_PLAIN, _PLAIN, _set(1, 2, 3))
_AFTER_REMOVAL: Log = (*_THREE, _set(1, 2, removed=(3,)))
_AFTER_BOTH: Log = (*_AFTER_REMOVAL, _set(1, 2, 4, removed=(3,)))
_CHECKPOINT = SnapshotId(len(_AFTER_BOTH), 1)


def _left_behind() -> Mapping[NodeId, Disk]:
    """Node 3 was removed, then 4 added, while 3 received neither record and 2 only the first.

    Nodes 1 and 4 have trimmed their logs to a checkpoint, so 3 has to download it.
    """
    from simulation.harness.core_disk import Disk

    known, voters = ElectionState(1), _voters(1, 2, 3)
    return {
        1: Disk(ElectionState(1, 1, key_of(1)), voters, _AFTER_BOTH, _CHECKPOINT, {_CHECKPOINT: 1}),
        2: Disk(known, voters, _AFTER_REMOVAL),
        3: Disk(ElectionState(1, 1), voters, _THREE),
        4: Disk(known, voters, _AFTER_BOTH, _CHECKPOINT, {_CHECKPOINT: 1}),
    }


MODELS: dict[str, Model] = {
    each.name: each
    for each in (
        Model(
            "election",
            "three voters elect; pre-votes, refusals and EndQuorumEpoch requests are messages, "
            "leaders resign",
            _fresh(3),
            epochs=1,
            late=LATE_ALL,
            stale=LATE_ALL,
            in_full=True,
            has_pre_votes=True,
            has_end_epochs=True,
            has_refusals=True,
            announces_commits=True,
            resigns=True,
            alike=((1, 2, 3),),
        ),
        Model(
            "records",
            "three voters, two epochs, three records of clients, late requests arrive, no crash",
            _fresh(3),
            epochs=2,
            records=3,
            late=LATE_ALL,
            alike=((1, 2, 3),),
        ),
        Model(
            "crashes",
            "three voters, two epochs, three records of clients, one crash of each",
            _fresh(3),
            epochs=2,
            records=3,
            crashes=1,
            alike=((1, 2, 3),),
        ),
        Model(
            "crashes-late",
            "three voters, two epochs, one record, one crash of each, late requests arrive",
            _fresh(3),
            epochs=2,
            records=1,
            crashes=1,
            late=LATE_ALL,
            alike=((1, 2, 3),),
        ),
        Model(
            "removals",
            "removals of two of four voters, by leaders that know nothing of each other",
            _alike(_OPENING, 1, 2, 3, 4),
            epochs=4,
            removals=2,
            late=LATE_ALL,
            known_watermark=len(_OPENING),
            removable=(1, 4),
            leadership_terms=(1, 2, 1),
        ),
        Model(
            "removals-two-leadership-terms",
            "removals of two of four voters, by two leaders that know nothing of each other",
            _alike(_OPENING, 1, 2, 3, 4),
            epochs=3,
            removals=2,
            late=LATE_ALL,
            known_watermark=len(_OPENING),
            removable=(1, 4),
            leadership_terms=(1, 2),
        ),
        Model(
            "removals-stale",
            "removal of one of three voters while requests of a leader's earlier leadership term "
            "arrive",
            _alike(_THREE, 1, 2, 3),
            epochs=4,
            removals=1,
            late=LATE_ALL,
            stale=LATE_ALL,
            known_watermark=len(_THREE),
            removable=(3,),
            leadership_terms=(1, 2, 1),
        ),
        Model(
            "checkpoint",
            "a removed voter learns of two changes of the voters from a checkpoint",
            _left_behind,
            epochs=4,
            records=1,
            late=LATE_ALL,
            stale=1,
            has_refusals=True,
            status=(1, 3),
            checkpoints={_CHECKPOINT: _AFTER_BOTH},
        ),
    )
}
