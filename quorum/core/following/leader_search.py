"""Whom a replica asks when its leader does not answer, and what it learns from that.

While the leader is left alone after a failure, another peer is asked who leads: with the same
Fetch, because any replica answers one with the epoch and the leader that it knows. When the leader
may be asked again that Fetch becomes a ``LEADER_SEARCH``, and no longer holds the one place for a
Fetch. Its answer still counts, however late it comes, but only for who leads: records
are taken from the Fetch in flight alone.

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
    """A relay or the leader if it may be asked, else a peer that may know who leads.

    None when nobody may be asked now. After a failure of the leader the next question goes to such
    a peer, also where a relay could be tried again. Of a silent relay and a silent leader one is
    always ready for the next Fetch, so the observer would never hear of a newer epoch.
    """
    if core.following.upstream.is_direct and _is_leader_left_alone(core):
        peer = _peer_to_search(core)
        if peer is not None:
            return peer
    relay = relay_to_ask(core)
    if relay is not None or not may_go_direct(core):
        return relay
    role = core.role
    if isinstance(role, Follower) and not _is_leader_left_alone(core):
        return role.leader_id
    if isinstance(role, Unattached) and core.now_ms < role.discover_at_ms:
        return None
    return _peer_to_search(core)


def _is_leader_left_alone(core: CoreState) -> bool:
    """Whether this replica has a leader that failed so recently that it may not be asked yet."""
    role, peers = core.role, core.following.peers
    return isinstance(role, Follower) and core.now_ms < peers.ready_ms(role.leader_id)


def _peer_to_search(core: CoreState) -> NodeId | None:
    """A peer other than the leader that may be asked who leads; None when there is none.

    A random one of those that failed least often in a row, so that addresses nobody answers at
    cost one request timeout each.
    """
    role = core.role
    leader_id = role.leader_id if isinstance(role, Follower) else None
    return _one_of(core, [peer for peer in discovery_peers(core) if peer != leader_id])


def server_to_ask(core: CoreState) -> NodeId | None:
    """The bootstrap server to be asked by a replica that campaigns; None when there is none.

    The voters of its own log say who leads when they answer its vote requests. If all of them were
    replaced while it was away, only a bootstrap server knows.
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
    """Who may know the leader: the bootstrap servers and the voters of the own log."""
    # A voter of our own number, on another disk, is nobody whom we could ask.
    servers = core.following.bootstrap_servers
    known = {*servers, core.me.id}
    return (*servers, *(each for each in core.voters.latest.ids if each not in known))


def is_search(core: CoreState, flight: InFlight, leader_id: NodeId) -> bool:
    """Whether a request went to a peer that can only tell who leads."""
    return flight.peer != leader_id and not core.following.upstream.is_relay(flight.peer)


def is_search_to_end(core: CoreState, flight: InFlight) -> bool:
    """Whether a Fetch to another peer holds the place of a Fetch to the leader."""
    role = core.role
    return (
        isinstance(role, Follower)
        and is_search(core, flight, role.leader_id)
        and core.now_ms >= core.following.peers.ready_ms(role.leader_id)
    )


def set_search_aside(core: CoreState, flight: InFlight) -> None:
    """Make room for a Fetch to the leader; the next search goes to somebody else."""
    core.fired(Timer.SEARCH_END)
    request_id = flight.request_id
    core.requests.in_flight = None
    core.requests.close_all(Purpose.LEADER_SEARCH)
    flight.purpose = Purpose.LEADER_SEARCH
    core.requests.open(flight, request_id)
    core.peer_failed(flight.peer)


def learn_from_search(core: CoreState, sender: NodeId, response: FetchResponse) -> bool:
    """Whether ``response`` answers the search set aside; it may name the leader."""
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
