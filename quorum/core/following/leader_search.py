"""Choice of the peer to fetch from if the leader does not answer, and learning the leader from it.

While the leader is in back-off after a failure, another peer gets the same Fetch. Any replica
answers a Fetch with its known epoch and leader. When the leader may be asked again, that Fetch
becomes a ``LEADER_SEARCH`` and frees the only place for a Fetch. Its answer, however late, can
still name the leader, but its records are ignored: only the Fetch in flight brings records.

See: docs/reference/elections.md (Finding the leader); ADR 38; KIP-595, KIP-853 (bootstrap servers).
"""

from __future__ import annotations

from collections.abc import Sequence

from quorum.core.following.relaying import may_go_direct, relay_to_ask
from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.protocol.responses import learn_from_response
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import InFlight, Purpose
from quorum.core.state.roles import Follower, Unattached
from quorum.core.state.timers import Timer
from quorum.types import NodeId


def whom_to_ask(core: CoreState) -> NodeId | None:
    """Return a relay or the leader if it may be asked, else a peer that may know the leader.

    None if no peer may be asked now. After a failure of the leader the next Fetch goes to such a
    peer, even if a relay could be tried again. Otherwise an observer with a silent relay and a
    silent leader would always fetch from one of the two and never learn of a newer epoch.
    """
    role, upstream = core.role, core.following.upstream
    is_left_alone = _is_leader_left_alone(core)
    if upstream.relays:
        if upstream.is_direct and is_left_alone:
            peer = _peer_to_search(core)
            if peer is not None:
                return peer
        relay = relay_to_ask(core)
        if relay is not None or not may_go_direct(core):
            return relay
    if isinstance(role, Follower) and not is_left_alone:
        return role.leader_id
    if isinstance(role, Unattached) and core.now_ms < role.discover_at_ms:
        return None
    return _peer_to_search(core)


def _is_leader_left_alone(core: CoreState) -> bool:
    """Whether this replica's leader failed recently and is still in back-off."""
    role, peers = core.role, core.following.peers
    return isinstance(role, Follower) and core.now_ms < peers.ready_ms(role.leader_id)


def _peer_to_search(core: CoreState) -> NodeId | None:
    """Return a peer that may be asked for the leader; None if there is none now.

    It is a random one of those with the fewest consecutive failures, so that each dead address
    costs only one request timeout. It is not the leader, which is in back-off where this is asked.
    """
    return _one_of(core, discovery_peers(core))


def server_to_ask(core: CoreState) -> NodeId | None:
    """Return the bootstrap server that a campaigning replica asks; None if there is none.

    The voters of its own log name the leader in their answers to vote requests. If all of them
    were replaced while it was away, only a bootstrap server knows the leader.
    """
    return _one_of(core, core.following.bootstrap_servers)


def _one_of(core: CoreState, peers: Sequence[NodeId]) -> NodeId | None:
    table = core.following.peers
    ready = [peer for peer in peers if core.now_ms >= table.ready_ms(peer)]
    if not ready:
        return None
    least = min(table.failures(peer) for peer in ready)
    return core.rng.choice([peer for peer in ready if table.failures(peer) == least])


def discovery_peers(core: CoreState) -> tuple[NodeId, ...]:
    """Return the peers that may know the leader: bootstrap servers and voters of this log."""
    # A voter with our node id on another disk cannot be addressed.
    servers = core.following.bootstrap_servers
    known = {*servers, core.me.id}
    return (*servers, *(each for each in core.voters.latest.ids if each not in known))


def is_search(core: CoreState, flight: InFlight, leader_id: NodeId) -> bool:
    """Whether a request went to a peer that can only name the leader."""
    return flight.peer != leader_id and not core.following.upstream.is_relay(flight.peer)


def is_search_to_end(core: CoreState, flight: InFlight) -> bool:
    """Whether a Fetch to another peer occupies the place of a Fetch to the leader."""
    role = core.role
    return (
        isinstance(role, Follower)
        and is_search(core, flight, role.leader_id)
        and core.now_ms >= core.following.peers.ready_ms(role.leader_id)
    )


def set_search_aside(core: CoreState, flight: InFlight) -> None:
    """Free the place for a Fetch to the leader; the next search goes to another peer."""
    core.fired(Timer.SEARCH_END)
    request_id = flight.request_id
    core.requests.end_flight()
    core.requests.close_all(Purpose.LEADER_SEARCH)
    flight.purpose = Purpose.LEADER_SEARCH
    core.requests.open(flight, request_id)
    core.peer_failed(flight.peer)


def learn_from_search(core: CoreState, sender: NodeId, response: FetchResponse) -> bool:
    """Whether ``response`` answers the search that was set aside; learn the leader from it."""
    search = core.requests.get(response.request_id)
    if (
        search is None
        or search.purpose is not Purpose.LEADER_SEARCH
        or not search.is_answered_by(sender)
    ):
        return False
    core.requests.close(search)
    learn_from_response(core, sender, response)
    return True
