"""The observer's side of relays: whom to ask and what to report, and which answers may be taken.

A relay takes the leader's place in Fetch and FetchSnapshot and nowhere else. Voters, and whoever
is about to become one, ask the leader only: a relay shows nothing above its high watermark, so a
voter behind it could never acknowledge what is not committed yet.

Loops cannot last: every answer names the relays it came through, a replica that finds itself among
them does not take it, and without the leader the age in the answers grows until the relays stop
serving.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorum.core.contract.events import UpstreamChanged
from quorum.core.messages.fetch_messages import FetchResponse, Subtree
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import InFlight
from quorum.core.state.replica_table import reported_subtree
from quorum.types import NO_NODE, NodeId


def uses_relays(core: CoreState) -> bool:
    """Whether this node may fetch from a relay at all: no voter, and none that wants to be one."""
    return bool(core.following.upstream.relays) and not core.is_voter and not core.config.auto_join


def relay_to_ask(core: CoreState) -> NodeId | None:
    """The relay to send the next Fetch to; None for none now.

    Of those that may be asked, the one that failed longest ago: otherwise an observer that fetches
    from the leader would try its first relay every time, and not find that another one is back.

    None as well once the patience is over: of two silent relays one is always ready for the next
    Fetch while the other one is left alone, and the leader's turn would never come.
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
    """Whether the leader, or somebody who may know it, can be asked now."""
    upstream = core.following.upstream
    return not uses_relays(core) or upstream.is_direct or core.now_ms >= upstream.direct_from_ms


def relay_times(core: CoreState) -> Iterator[int]:
    """When, without a Fetch under way, something about relays is due."""
    upstream = core.following.upstream
    if not uses_relays(core):
        return
    not_before = upstream.retry_ms if upstream.is_direct else 0
    for peer in upstream.relays:
        yield max(not_before, core.following.peers.ready_ms(peer))
    if not upstream.is_direct and upstream.direct_from_ms < NEVER_MS:
        yield upstream.direct_from_ms


def problem_with_path(core: CoreState, response: FetchResponse) -> str:
    """Why the way an answer came does not do; empty when it does."""
    path = response.path
    if not path:
        return ""
    if not uses_relays(core):
        return f"an answer of relay {path[0].id} to a node that asked the leader"
    if any(key.matches(core.me) for key in path):
        return f"an answer that came through this node: {_text(response)}"
    if len(path) > core.config.relay_hops_max:
        return f"an answer through more than {core.config.relay_hops_max} relays: {_text(response)}"
    if response.contact_age_ms < 0:
        return f"a contact age of {response.contact_age_ms}"
    return ""


def _text(response: FetchResponse) -> str:
    return ">".join(str(key.id) for key in response.path)


def note_route(core: CoreState, flight: InFlight, response: FetchResponse) -> None:
    """A useful answer: remember the way it came and when the leader was known to lead.

    Counted from when the request left, so the time is never too late. Unless the sender's clock
    runs faster than ours, in which case it is so by the difference over one answer.
    """
    asked_ms = flight.due_ms - core.config.request_timeout_ms
    upstream = core.following.upstream
    if upstream.relays and (upstream.epoch == 0 or upstream.path != response.path):
        core.event(UpstreamChanged(flight.peer, tuple(key.id for key in response.path)))
    if core.relay is not None:
        # Who stands between us and the leader cannot be below us any more.
        for key in response.path:
            core.relay.downstream.pop(key, None)
    upstream.confirm(response.path, core.epoch, asked_ms - response.contact_age_ms)


def source_of_records(core: CoreState) -> NodeId:
    """Whom this follower gets its records and snapshots from: a relay or the leader."""
    upstream = core.following.upstream
    if uses_relays(core) and upstream.is_relay(upstream.current) and not upstream.is_direct:
        return upstream.current
    return core.leader_id if core.leader_id != NO_NODE else upstream.current


def subtree_report(core: CoreState) -> Subtree | None:
    """What the next Fetch says of the observers below this node; None when there are none."""
    if core.relay is None or reported_subtree(core) is None:
        return None
    return core.relay.report(core.now_ms, core.epoch, core.log.start.offset)
