"""When the node wants to be woken next: the earliest of the deadlines its role has.

Only what ``tick`` can act on counts. What waits for the disk or for a peer has no deadline of
its own; ``persisted`` and ``receive`` will come.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorum.core.election import asks_voters
from quorum.core.following import discovery_peers
from quorum.core.held_fetches import NEVER_MS
from quorum.core.roles import Candidate, Follower, Leader, Prospective, Resigned, Unattached
from quorum.core.snapshot_transfer import is_downloading, is_waiting_for_disk
from quorum.core.state import CoreState


def next_deadline(core: CoreState) -> int | None:
    """The time of the next ``tick``, always in the future; None when nothing is due."""
    role = core.role
    if isinstance(role, Leader):
        earliest = leader_deadline(role)
    else:
        earliest = min(_of_others(core), default=NEVER_MS)
    if core.watermark_store_due_ms < earliest:
        earliest = core.watermark_store_due_ms
    if earliest >= NEVER_MS:
        return None
    return max(earliest, core.now_ms + 1)


def leader_deadline(role: Leader) -> int:
    """When a leader has something to do again. Asked on every call of the hot path."""
    if not role.established:
        return NEVER_MS
    earliest = role.upkeep_due_ms
    if role.held.earliest_ms < earliest:
        earliest = role.held.earliest_ms
    if role.remote and role.check_quorum_deadline_ms < earliest:
        earliest = role.check_quorum_deadline_ms
    return earliest


def _of_others(core: CoreState) -> Iterator[int]:
    role = core.role
    match role:
        case Unattached():
            if core.is_voter:
                yield role.election_deadline_ms
            yield from _of_fetching(core)
        case Follower():
            if core.is_voter:
                yield role.fetch_deadline_ms
                yield role.stand_at_ms
            yield from _of_fetching(core)
        case Prospective() | Candidate():
            yield role.election_deadline_ms
            yield role.retry_ms
            if asks_voters(role):
                for ballot in role.ballots.values():
                    if ballot.granted is None:
                        yield ballot.due_ms
        case Resigned():
            if not core.is_shutting_down:
                yield role.election_deadline_ms
            for farewell in role.farewells.values():
                yield farewell.due_ms


def _of_fetching(core: CoreState) -> Iterator[int]:
    flight, role, download = core.in_flight, core.role, core.download
    leader_id = role.leader_id if isinstance(role, Follower) else None
    if flight is not None:
        if flight.deadline_ms is not None:
            yield flight.deadline_ms
            if leader_id is not None and flight.peer != leader_id:
                yield core.peers.ready_ms(leader_id)
        return
    not_before = role.discover_at_ms if isinstance(role, Unattached) else 0
    if leader_id is not None and download is not None and is_downloading(core, leader_id):
        if download.is_complete:
            yield max(download.contact_due_ms, core.peers.ready_ms(leader_id))
        elif not is_waiting_for_disk(core, download):
            yield core.peers.ready_ms(leader_id)
    elif leader_id is not None:
        yield core.peers.ready_ms(leader_id)
    if leader_id is None or core.now_ms < core.peers.ready_ms(leader_id):
        for peer in discovery_peers(core):
            if peer != leader_id:
                yield max(not_before, core.peers.ready_ms(peer))
