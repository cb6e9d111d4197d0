"""Where the leader of this epoch is reached: by this replica, and by the clients it sends there."""

from __future__ import annotations

from quorum.core.contract.output import LeaderEndpoints
from quorum.core.state.core_state import CoreState
from quorum.types import Endpoint, Epoch, NodeId, ReplicaKey


def learn_endpoints(core: CoreState, endpoints: tuple[Endpoint, ...]) -> None:
    """Remember where the leader can be reached, if ``endpoints`` adds to what is known.

    The endpoints in the voter's record always win; ``endpoints`` only adds further listeners. A
    peer that knows fewer of them takes none away.
    """
    recorded = core.voters.endpoints_of(core.leader_id)
    leader_known = core.known_leader
    leader_known.basis = core.voters.latest
    further = _besides(recorded, endpoints)
    kept = _besides(recorded, leader_known.further)
    leader_known.further = further if len(further) >= len(kept) else kept
    known = (*recorded, *leader_known.further)
    if known != leader_known.endpoints:
        leader_known.endpoints = known
        leader = core.voters.latest.get(core.leader_id)
        key = leader.key if leader is not None else ReplicaKey(core.leader_id)
        core.progress(LeaderEndpoints(key, tuple(each.address for each in known)))


def _besides(
    recorded: tuple[Endpoint, ...], endpoints: tuple[Endpoint, ...]
) -> tuple[Endpoint, ...]:
    """Return the endpoints of listeners that the record does not have."""
    return tuple([e for e in endpoints if all(e.name != each.name for each in recorded)])


def is_findable(core: CoreState, leader_id: NodeId, epoch: Epoch) -> bool:
    """Whether this replica knows where the leader of ``epoch`` is reached."""
    is_known = (leader_id, epoch) == (core.leader_id, core.epoch) and core.known_leader.endpoints
    return bool(is_known or core.voters.endpoints_of(leader_id))
