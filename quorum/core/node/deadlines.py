"""The time of the node's next tick: the earliest deadline of its role.

Only deadlines on which ``tick`` can act count. Work that waits for the disk or a peer has no
deadline: ``persisted`` or ``receive`` will follow.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorum.core.election.bootstrapping import bootstrap_deadlines
from quorum.core.election.campaign import asks_voters
from quorum.core.following.leader_search import discovery_peers, is_search
from quorum.core.following.relaying import may_go_direct, relay_times, uses_relays
from quorum.core.following.snapshot_transfer import is_downloading, is_waiting_for_disk
from quorum.core.membership.self_registration import self_registration_due_ms
from quorum.core.replication.read_forwarding import reads_due_ms
from quorum.core.replication.relay_serving import relay_deadline
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import InFlight
from quorum.core.state.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorum.types import NodeId

TURN_IS_DUE = 0
"""A deadline in the past: the turn may have work to do."""


def next_deadline(core: CoreState) -> int | None:
    """Return the time of the next ``tick``, always in the future; None if nothing is due."""
    role = core.role
    if isinstance(role, Leader):
        earliest = leader_deadline(core, role)
    else:
        earliest = follower_deadline(core, role) if isinstance(role, Follower) else TURN_IS_DUE
        if earliest == TURN_IS_DUE:
            earliest = _of_all(core)
    if earliest >= NEVER_MS:
        return None
    return earliest if earliest > core.now_ms else core.now_ms + 1


def _of_all(core: CoreState) -> int:
    """Return the earliest deadline of a role that does not lead."""
    disk = core.disk
    earliest = min(
        min(_of_others(core), default=NEVER_MS),
        reads_due_ms(core),
        disk.watermark_store_due_ms,
        disk.watch.check_due_ms,
        core.chain.due_ms,
    )
    if core.relay is not None:
        earliest = min(earliest, relay_deadline(core, core.relay))
    return earliest


def leader_deadline(core: CoreState, role: Leader) -> int:
    """Return a leader's earliest deadline. Called after every entry point that it serves."""
    disk = core.disk
    earliest = min(disk.watermark_store_due_ms, disk.watch.check_due_ms, core.chain.due_ms)
    if not role.established:
        return earliest
    # Compared one by one, which costs less than a longer ``min``.
    if role.upkeep_due_ms < earliest:
        earliest = role.upkeep_due_ms
    if role.membership_due_ms < earliest:
        earliest = role.membership_due_ms
    if role.held.earliest_ms < earliest:
        earliest = role.held.earliest_ms
    if role.remote and role.check_quorum_deadline_ms < earliest:
        earliest = role.check_quorum_deadline_ms
    if role.transfer is not None and role.transfer.deadline_ms < earliest:
        earliest = role.transfer.deadline_ms
    return earliest


def follower_deadline(core: CoreState, role: Follower) -> int:
    """Return the earliest deadline of a follower whose Fetch is under way.

    ``TURN_IS_DUE`` if its turn may have work to do now. Called after every entry point of a
    follower, so it finds in one pass what ``_of_all`` finds for every role.
    """
    following, registration, flight = core.following, core.registration, core.requests.in_flight
    if (
        flight is None
        or core.relay is not None
        or core.forwarded.reads
        or following.download is not None
        or following.sealed_snapshot is not None
        or registration.basis is not core.voters.latest
    ):
        return TURN_IS_DUE
    disk = core.disk
    earliest = min(
        flight.due_ms, disk.watermark_store_due_ms, disk.watch.check_due_ms, core.chain.due_ms
    )
    if registration.change is not None and role.registration.due_ms < earliest:
        earliest = role.registration.due_ms
    if core.may_campaign:
        if role.fetch_deadline_ms < earliest:
            earliest = role.fetch_deadline_ms
        if role.campaign_at_ms < earliest:
            earliest = role.campaign_at_ms
    if (
        flight.peer != role.leader_id
        and is_search(core, flight, role.leader_id)
        and flight.has_left
    ):
        earliest = min(earliest, following.peers.ready_ms(role.leader_id))
    return earliest


def _of_others(core: CoreState) -> Iterator[int]:
    role = core.role
    match role:
        case Unattached():
            if core.may_campaign:
                yield role.election_deadline_ms
            yield from bootstrap_deadlines(core)
            yield from _of_fetching(core)
        case Follower():
            if core.may_campaign:
                yield role.fetch_deadline_ms
                yield role.campaign_at_ms
            yield self_registration_due_ms(core, role)
            yield from _of_fetching(core)
        case Prospective() | Candidate():
            yield from _of_campaign(core, role)
        case Resigned():
            if not core.process.is_shutting_down:
                yield role.election_deadline_ms
            for end_epoch in role.end_epochs.values():
                yield end_epoch.due_ms


def _of_campaign(core: CoreState, role: Prospective | Candidate) -> Iterator[int]:
    yield role.election_deadline_ms
    yield role.retry_ms
    if isinstance(role, Prospective):
        if core.now_ms < role.yield_until_ms:
            yield role.yield_until_ms
        if not role.fail_fast:
            yield from _of_search(core)
    if asks_voters(core, role):
        for ballot in role.ballots.values():
            if ballot.granted is None:
                yield ballot.due_ms


def _of_search(core: CoreState) -> Iterator[int]:
    flight = core.requests.in_flight
    if flight is None:
        for server in core.following.bootstrap_servers:
            yield core.following.peers.ready_ms(server)
    else:
        yield flight.due_ms


def _of_fetching(core: CoreState) -> Iterator[int]:
    flight, role = core.requests.in_flight, core.role
    leader_id = role.leader_id if isinstance(role, Follower) else None
    if flight is not None:
        yield from _of_flight(core, flight, leader_id)
        return
    if uses_relays(core):
        wait_ms = _download_wait(core, core.following.upstream.relays[0])
        yield from (max(wait_ms, each) for each in relay_times(core))
        if not may_go_direct(core):
            return
    not_before = role.discover_at_ms if isinstance(role, Unattached) else 0
    if leader_id is not None:
        yield max(_download_wait(core, leader_id), core.following.peers.ready_ms(leader_id))
    if leader_id is None or core.now_ms < core.following.peers.ready_ms(leader_id):
        for peer in discovery_peers(core):
            if peer != leader_id:
                yield max(not_before, core.following.peers.ready_ms(peer))


def _of_flight(core: CoreState, flight: InFlight, leader_id: NodeId | None) -> Iterator[int]:
    if not flight.has_left:
        return
    yield flight.due_ms
    if leader_id is not None and is_search(core, flight, leader_id):
        yield core.following.peers.ready_ms(leader_id)


def _download_wait(core: CoreState, peer: NodeId) -> int:
    """Return the time from which on a download lets ``peer`` be asked; 0 without one."""
    download = core.following.download
    if download is None or not is_downloading(core, peer):
        return 0
    if download.is_complete:
        return download.contact_due_ms
    return NEVER_MS if is_waiting_for_disk(core, download) else 0
