"""The observer's side of relays: which one to ask, what to report, which answers to accept.

A relay replaces the leader for Fetch and FetchSnapshot only. Voters and future voters fetch from
the leader: a relay serves nothing above its high watermark, so a voter behind it could never
acknowledge an uncommitted record.

Loops cannot last. Every answer names the relays it came through, and a replica discards an answer
whose route contains itself. Without the leader, the age in the answers grows until the relays stop
serving.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorum.core.contract.events import UpstreamChanged
from quorum.core.contract.reasons import IgnoreReason, Problem
from quorum.core.messages.fetch_messages import FetchResponse, Subtree
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import InFlight
from quorum.core.state.relay_table import Relay
from quorum.core.state.replica_table import reported_subtree
from quorum.types import NO_NODE, NodeId


def uses_relays(core: CoreState) -> bool:
    """Whether this node may fetch from a relay: it is neither a voter nor going to become one."""
    return bool(core.following.upstream.relays) and not core.is_voter and not core.config.auto_join


def relay_to_ask(core: CoreState) -> NodeId | None:
    """Return the relay for the next Fetch; None if there is none now.

    Of the relays that may be asked, it is the one that failed longest ago. Otherwise an observer
    that fetches from the leader would always try its first relay, and not notice that another one
    is back.

    None also after ``relay_patience_ms``: with two silent relays, one is always ready for the next
    Fetch while the other one is in back-off, so the leader would never be asked.
    """
    upstream = core.following.upstream
    not_before_ms = upstream.retry_ms if upstream.is_direct else 0
    until_ms = NEVER_MS if upstream.is_direct else upstream.direct_from_ms
    if not uses_relays(core) or not not_before_ms <= core.now_ms < until_ms:
        return None
    peers = core.following.peers
    ready = [each for each in upstream.in_order() if core.now_ms >= peers.ready_ms(each)]
    return min(ready, key=peers.ready_ms, default=None)


def may_go_direct(core: CoreState) -> bool:
    """Whether the leader, or a peer that may know it, can be asked now."""
    upstream = core.following.upstream
    return not uses_relays(core) or upstream.is_direct or core.now_ms >= upstream.direct_from_ms


def relay_times(core: CoreState) -> Iterator[int]:
    """Yield the times at which work for relays is due while no Fetch is under way."""
    upstream = core.following.upstream
    if not uses_relays(core):
        return
    not_before = upstream.retry_ms if upstream.is_direct else 0
    for peer in upstream.relays:
        yield max(not_before, core.following.peers.ready_ms(peer))
    if not upstream.is_direct and upstream.direct_from_ms < NEVER_MS:
        yield upstream.direct_from_ms


def problem_with_path(core: CoreState, response: FetchResponse) -> Problem | None:
    """Return why the route of an answer is unacceptable; None if it is acceptable."""
    path = response.path
    if not path:
        return None
    if not uses_relays(core):
        return IgnoreReason.RELAY_NOT_USED, f"relay {path[0].id}"
    if any(key.matches(core.me) for key in path):
        return IgnoreReason.ROUTE_LOOP, _text(response)
    if len(path) > core.config.relay_hops_max:
        return IgnoreReason.ROUTE_TOO_LONG, _text(response)
    if response.contact_age_ms < 0:
        return IgnoreReason.NO_CONTACT_AGE, str(response.contact_age_ms)
    return None


def _text(response: FetchResponse) -> str:
    return ">".join(str(key.id) for key in response.path)


def note_route(core: CoreState, flight: InFlight, response: FetchResponse) -> None:
    """Record the route of a useful answer, and when the leader was known to lead.

    The age counts from the departure of the request, so the time is never too late. A sender's
    clock that runs faster than ours adds at most its drift during one answer.
    """
    asked_ms = flight.due_ms - core.config.request_timeout_ms
    upstream = core.following.upstream
    if upstream.relays and (upstream.epoch == 0 or upstream.path != response.path):
        core.event(UpstreamChanged(flight.peer, tuple(key.id for key in response.path)))
    if core.relay is not None:
        # A relay between us and the leader cannot be below us any more.
        for key in response.path:
            core.relay.downstream.pop(key, None)
    upstream.confirm(response.path, core.epoch, asked_ms - response.contact_age_ms)


def source_of_records(core: CoreState) -> NodeId:
    """Return the peer that this follower fetches from: a relay or the leader."""
    upstream = core.following.upstream
    if uses_relays(core) and upstream.is_relay(upstream.current) and not upstream.is_direct:
        return upstream.current
    return core.leader_id if core.leader_id != NO_NODE else upstream.current


def subtree_report(core: CoreState, relay: Relay) -> Subtree | None:
    """Return the next Fetch's report of the observers below this node; None if there are none."""
    if reported_subtree(core) is None:
        return None
    return relay.report(core.now_ms, core.epoch, core.log.start.offset)
