"""Where the leader of this epoch is reached: by this replica, and by the clients it sends there."""

from __future__ import annotations

from quorum.core.contract.output import LeaderEndpoints
from quorum.core.state.core_state import CoreState
from quorum.core.state.known_leader import KnownLeader, NamedBy
from quorum.types import Endpoint, ReplicaKey


def learn_endpoints(
    core: CoreState, endpoints: tuple[Endpoint, ...] = (), by: NamedBy = NamedBy.PEER
) -> None:
    """Remember where the leader can be reached, from its voter record and from a message.

    The record always wins; a message adds only listeners that the record does not have. Of two
    messages the one of the better source is believed (``NamedBy``), and the later one of the same
    source. But a peer that knows fewer listeners than another takes none away.

    An unproven request adds nothing to a record. Without one it may be all there is to find the
    leader by. So the peers' listener is taken from it, but clients are not sent there, and other
    replicas are not told (ADR 52).
    """
    recorded = core.voters.endpoints_of(core.leader_id)
    known = core.known_leader
    known.basis = core.voters.latest
    was_for_clients = known.named_by is not NamedBy.UNPROVEN
    if by is NamedBy.UNPROVEN:
        endpoints = () if recorded else endpoints[:1]
    if endpoints and _is_believed(known, endpoints, by):
        known.named, known.named_by = endpoints, by
    if recorded and known.named_by is NamedBy.UNPROVEN:
        known.named, known.named_by = (), NamedBy.NOBODY
    further = [e for e in known.named if all(e.name != each.name for each in recorded)]
    found = (*recorded, *further)
    is_for_clients = known.named_by is not NamedBy.UNPROVEN
    if found == known.endpoints and (is_for_clients is was_for_clients or not found):
        return
    known.endpoints = found
    leader = core.voters.latest.get(core.leader_id)
    key = leader.key if leader is not None else ReplicaKey(core.leader_id)
    addresses = tuple(each.address for each in found)
    core.progress(LeaderEndpoints(key, addresses, is_for_clients))


def _is_believed(known: KnownLeader, endpoints: tuple[Endpoint, ...], by: NamedBy) -> bool:
    """Whether ``endpoints`` replace those that are known from messages."""
    if by is NamedBy.PEER and by is known.named_by:
        return len(endpoints) >= len(known.named)
    return by >= known.named_by
