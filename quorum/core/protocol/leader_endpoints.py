"""Where the leader of this epoch is reached: by this replica, and by the clients it sends there."""

from __future__ import annotations

from quorum.core.contract.output import LeaderEndpoints
from quorum.core.messages.read_messages import NO_ROUND
from quorum.core.state.core_state import CoreState
from quorum.core.state.known_leader import KnownLeader, NamedBy
from quorum.core.state.roles import Follower
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
    replicas are not told, until the record or another replica names the same address (ADR 52).
    """
    recorded = core.voters.endpoints_of(core.leader_id)
    known = core.known_leader
    known.basis = core.voters.latest
    was_doubtful = known.is_doubtful
    if was_doubtful and (recorded or (endpoints and by >= NamedBy.PEER)):
        _end_doubt(core, (recorded or endpoints)[0])
    if by < NamedBy.PEER:
        is_asked_there = by is NamedBy.ANSWERER and endpoints[:1] == known.named[:1]
        endpoints = () if recorded else endpoints if is_asked_there else endpoints[:1]
    if endpoints and _is_believed(known, endpoints, by):
        known.named, known.named_by = endpoints, by
    further = [e for e in known.named if all(e.name != each.name for each in recorded)]
    found = (*recorded, *further)
    if found == known.endpoints and (known.is_doubtful is was_doubtful or not found):
        return
    known.endpoints = found
    leader = core.voters.latest.get(core.leader_id)
    key = leader.key if leader is not None else ReplicaKey(core.leader_id)
    addresses = tuple(each.address for each in found)
    core.progress(LeaderEndpoints(key, addresses, not known.is_doubtful))


def _end_doubt(core: CoreState, peers_listener: Endpoint) -> None:
    """Decide about unproven endpoints, now that the leader's peers' listener is known.

    If it is the same, only the leader can have answered there; what is known counts like another
    replica's word, which may add to it. Otherwise what was said there is dropped with its read
    round, so that the leader names its endpoints.
    """
    known, role = core.known_leader, core.role
    if known.named[0].address == peers_listener.address:
        known.named_by = NamedBy.PEER
        return
    known.named, known.named_by = (), NamedBy.NOBODY
    if isinstance(role, Follower):
        role.read_round = NO_ROUND


def _is_believed(known: KnownLeader, endpoints: tuple[Endpoint, ...], by: NamedBy) -> bool:
    """Whether ``endpoints`` replace those that are known from messages."""
    if by is NamedBy.PEER and by is known.named_by:
        return len(endpoints) >= len(known.named)
    return by >= known.named_by
