"""The follower's side of Fetch: requesting, appending, truncating, and detecting a silent leader.

Only one Fetch is under way at any time, and none during a FetchSnapshot; otherwise the same offsets
could be appended twice. A Fetch after an append waits for the disk (``CoreState.acknowledge``).

See: KIP-595; KIP-279 (279.2, 279.4).
"""

from __future__ import annotations

from quorum.core.contract.events import LogDiverged, RecordsAppended, TruncationRefused
from quorum.core.contract.outcomes import DownloadOutcome
from quorum.core.contract.output import Append, LogTruncated, Truncate
from quorum.core.contract.reasons import (
    DisqualifiedReason,
    DivergenceReason,
    IgnoreReason,
    Problem,
    RoleChangeReason,
)
from quorum.core.election.campaign import begin_campaign
from quorum.core.following.advertised_versions import versions_to_advertise
from quorum.core.following.chunk_requests import ask_ahead
from quorum.core.following.leader_search import (
    is_search,
    is_search_to_end,
    learn_from_search,
    server_to_ask,
    set_search_aside,
    whom_to_ask,
)
from quorum.core.following.record_checks import problem_with_records
from quorum.core.following.relaying import (
    note_route,
    problem_with_path,
    subtree_report,
    uses_relays,
)
from quorum.core.following.snapshot_transfer import (
    abandon_download,
    begin_download,
    is_downloading,
    poll_download,
    why_not_download,
)
from quorum.core.integrity.divergence_resolution import start_divergence_resolution
from quorum.core.liveness import freshness
from quorum.core.messages.fetch_messages import (
    FetchRequest,
    FetchResponse,
    ReceivedFetchResponse,
)
from quorum.core.messages.read_messages import NO_ROUND
from quorum.core.messages.received_records import ReceivedRecords
from quorum.core.positions.log_view import LogView
from quorum.core.protocol.leader_endpoints import learn_endpoints
from quorum.core.protocol.refusals import ignore
from quorum.core.protocol.requests import response_due_ms
from quorum.core.protocol.responses import learn_from_response, note_leader_contact, take_in_flight
from quorum.core.protocol.role_transitions import lose_leader
from quorum.core.replication.durability import lift_vote_floor_at_leaders_end
from quorum.core.replication.trimming import follow_log_start
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import InFlight, Purpose
from quorum.core.state.roles import Follower, Unattached
from quorum.core.state.timers import Timer
from quorum.core.voters.voter_set import VoterSet
from quorum.errors import ErrorCode
from quorum.types import NodeId, OffsetAndEpoch, SnapshotId


def poll_follower(core: CoreState, role: Follower) -> None:
    """Campaign if the leader is gone or silent; otherwise keep a Fetch under way."""
    is_gone = core.now_ms >= role.campaign_at_ms
    if (is_gone or core.now_ms >= role.fetch_deadline_ms) and core.may_campaign:
        core.fired(Timer.LOST_LEADER if is_gone else Timer.FETCH)
        reason = RoleChangeReason.LEADER_GONE if is_gone else RoleChangeReason.FETCH_TIMEOUT
        if begin_campaign(core, fail_fast=is_gone, reason=reason):
            return
        # This node may not campaign. Drop the leader's contact, so that it votes for others.
        role.has_fetched = False
        role.campaign_at_ms = NEVER_MS
        role.fetch_deadline_ms = core.now_ms + role.fetch_timeout_ms
    poll_fetch(core)


def poll_fetch(core: CoreState) -> None:
    """Keep one Fetch under way, to the leader or to a peer that may know the leader."""
    flight = _fail_late_request(core)
    if flight is not None and flight.has_left and is_search_to_end(core, flight):
        set_search_aside(core, flight)
        flight = None
    if core.chain.quarantined_log:
        return
    if flight is None:
        _ask(core)
    download = core.following.download
    if download is not None:
        ask_ahead(core, download)


def poll_search(core: CoreState) -> None:
    """Keep a Fetch to a bootstrap server under way while this replica campaigns."""
    if _fail_late_request(core) is not None or core.chain.quarantined_log:
        return
    server = server_to_ask(core)
    if server is not None:
        if core.following.peers.ready_ms(server):
            core.fired(Timer.RETRY_BACKOFF, Purpose.FETCH)
        _fetch_from(core, server)


def _fail_late_request(core: CoreState) -> InFlight | None:
    """Return the request in flight; fail and clear it if it has timed out."""
    flight = core.requests.in_flight
    if flight is None or core.now_ms < flight.due_ms:
        return flight
    core.fired(Timer.REQUEST_TIMEOUT, flight.purpose)
    core.requests.end_flight()
    core.peer_failed(flight.peer)
    return None


def _ask(core: CoreState) -> None:
    peer = whom_to_ask(core)
    if peer is None:
        return
    _count_pauses(core, peer)
    if not is_downloading(core, peer) or poll_download(core, peer):
        _fetch_from(core, peer)


def _count_pauses(core: CoreState, peer: NodeId) -> None:
    """Count the timers that delayed the request to ``peer``, before it is sent."""
    role, upstream = core.role, core.following.upstream
    if isinstance(role, Unattached) and role.discover_at_ms:
        core.fired(Timer.DISCOVERY)
        role.discover_at_ms = 0
    if core.following.peers.ready_ms(peer):
        core.fired(Timer.RETRY_BACKOFF, Purpose.FETCH)
    if not upstream.relays:
        return
    if upstream.is_relay(peer):
        if upstream.is_direct:
            core.fired(Timer.RELAY_RETRY)
    elif uses_relays(core) and not upstream.is_direct:
        core.fired(Timer.RELAY_PATIENCE)


def _fetch_from(core: CoreState, peer: NodeId) -> None:
    role, log, config = core.role, core.log, core.config
    upstream = core.following.upstream
    if not upstream.is_direct and not upstream.is_relay(peer):
        upstream.go_direct(core.now_ms, config)
    request_id = core.requests.next_id()
    supported = versions_to_advertise(core, peer)
    ticket = core.acknowledge(
        peer,
        FetchRequest(
            request_id,
            core.cluster_id,
            core.me,
            core.epoch,
            log.end_offset,
            log.end_epoch,
            core.high_watermark,
            config.fetch_max_wait_ms,
            config.fetch_bytes_max,
            role.read_round if isinstance(role, Follower) else NO_ROUND,
            subtree=None if core.relay is None else subtree_report(core, core.relay),
            is_disqualified=bool(core.election.disqualified),
            has_lost_records=core.election.vote_floor is not None,
            supported=supported,
        ),
    )
    core.requests.begin_flight(
        InFlight(
            peer,
            Purpose.FETCH,
            response_due_ms(core, ticket),
            request_id,
            ticket=ticket,
            supported=supported,
        )
    )


def on_fetch_response(core: CoreState, sender: NodeId, received: ReceivedFetchResponse) -> None:
    """Process one of the three answers, or learn the leader from it."""
    response, flight = received.response, core.requests.in_flight
    is_other = flight is None or flight.request_id != response.request_id
    if is_other and learn_from_search(core, sender, response):
        return
    flight = take_in_flight(core, sender, response, Purpose.FETCH)
    if flight is not None:
        _take_answer(core, flight, sender, received)


def _take_answer(
    core: CoreState, flight: InFlight, sender: NodeId, received: ReceivedFetchResponse
) -> None:
    response, records = received.response, received.records
    epoch, role_before = core.epoch, core.role
    is_current = learn_from_response(core, sender, response)
    if core.epoch != epoch:
        return
    role = core.role
    is_answer = is_current and response.error == ErrorCode.NONE
    route_problem = problem_with_path(core, response) if is_answer else None
    problem = route_problem or (_problem_with(core, received) if is_answer else None)
    if problem is not None:
        # An unusable route results from the layout of relays; it is no protocol violation.
        ignore(core, sender, response, *problem, is_violation=route_problem is None)
    if not is_answer or problem is not None or not isinstance(role, Follower):
        core.peer_failed(flight.peer)
        if is_current and response.error == ErrorCode.DIGEST_MISMATCH:
            _note_mismatch(core, flight)
        if role is role_before:
            _detect_disowned_epoch(core, flight, response)
            _detect_rolled_back_disk(core, flight, response)
        return
    note_leader_contact(core, role, flight.peer, response.read_round)
    note_route(core, flight, response)
    if flight.supported:
        role.advertised_versions = flight.supported
    if response.diverging is not None:
        _resolve_divergence(core, flight, response.diverging)
        return
    if response.snapshot_id is not None:
        _take_snapshot_id(core, flight, role, response.snapshot_id)
        return
    if core.following.download is not None:
        abandon_download(core, DownloadOutcome.RECORDS_SERVED)
    if records is not None:
        _append_received(core, records)
    elif flight.peer == role.leader_id:
        lift_vote_floor_at_leaders_end(core)
    core.raise_high_watermark(follower_high_watermark(core.log, response.high_watermark))
    follow_log_start(core, response.log_start_offset)
    sent_ms = flight.due_ms - core.config.request_timeout_ms
    freshness.note_answered_fetch(core, sent_ms, response.leader_age_ms, response.high_watermark)


def _take_snapshot_id(
    core: CoreState, flight: InFlight, role: Follower, snapshot_id: SnapshotId
) -> None:
    """Download the snapshot from the leader or relay that offered it, addressed by its node id.

    If the leader answered under a bootstrap address, that address is not asked again.
    """
    begin_download(core, flight.peer, snapshot_id)
    if is_search(core, flight, role.leader_id):
        core.peer_failed(flight.peer)


def _detect_disowned_epoch(core: CoreState, flight: InFlight, response: FetchResponse) -> None:
    """Lose the leader at once if it reports that it no longer leads this epoch."""
    role = core.role
    if (
        isinstance(role, Follower)
        and flight.peer == role.leader_id
        and response.epoch == core.epoch
        and response.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
        and core.known_leader.lost is None
    ):
        lose_leader(core, core.rng.randint(0, core.config.lost_leader_jitter_ms))


def _note_mismatch(core: CoreState, flight: InFlight) -> None:
    """Resolve a divergence: the leader's history differs from ours below our log end.

    The answer proves that the leader is alive, so it counts as a contact.
    """
    role = core.role
    if isinstance(role, Follower) and flight.peer == role.leader_id:
        role.has_fetched = True
        role.fetch_deadline_ms = core.now_ms + role.fetch_timeout_ms
        _resolve_divergence_with_leader(core, core.log.end_offset, DivergenceReason.DIGEST_REFUSED)


def _resolve_divergence_with_leader(
    core: CoreState, end_offset: int, reason: DivergenceReason
) -> None:
    leader_id = core.leader_id
    votes = core.voters.latest.get(leader_id) is not None
    start_divergence_resolution(core, leader_id, end_offset, reason, peer_votes=votes)


def _detect_rolled_back_disk(core: CoreState, flight: InFlight, response: FetchResponse) -> None:
    """Disqualify this disk if the leader saw it acknowledge records that it no longer has.

    The disk was rolled back, so it may also have lost votes. If it went back to before its self
    registration, its own log does not show that it is a voter; only the leader knows.
    """
    role = core.role
    if (
        isinstance(role, Follower)
        and flight.peer == role.leader_id
        and response.epoch == core.epoch
        and response.error == ErrorCode.REPLICA_REGRESSED
    ):
        core.disqualify(
            DisqualifiedReason.ROLLED_BACK,
            f"leader {role.leader_id} saw it acknowledge records beyond {core.log.end_offset}: "
            "the disk was rolled back, or is a copy",
        )


def _problem_with(core: CoreState, received: ReceivedFetchResponse) -> Problem | None:
    """Return why an answer of this epoch without an error cannot be used; None if it can."""
    role, response = core.role, received.response
    if not isinstance(role, Follower) or response.leader_id != role.leader_id:
        return IgnoreReason.NOT_FROM_LEADER, f"node {response.leader_id}"
    reason, detail = IgnoreReason.BAD_RECORDS, ""
    if response.diverging is not None:
        reason = IgnoreReason.BAD_DIVERGENCE
        detail = _problem_with_divergence(core, response.diverging)
    elif response.snapshot_id is not None:
        reason = IgnoreReason.BAD_SNAPSHOT
        detail = why_not_download(core, response.snapshot_id)
    elif received.records is not None:
        detail = problem_with_records(core, received.records)
    return (reason, detail) if detail else None


def _append_received(core: CoreState, records: ReceivedRecords) -> None:
    epoch, base, end = records.epochs[-1].epoch, records.base_offset, records.end_offset
    effect = core.effect(
        Append(base, end, epoch, records.payload, (), records.epochs, records.headers)
    )
    core.log.append(end, records.epochs, effect)
    core.event(RecordsAppended(base, end, epoch))
    for each in records.voters:
        core.voters.add(each.offset, VoterSet(each.voters, each.removed, each.incarnation))
    if records.voters:
        core.voters_changed()
        learn_endpoints(core)


def follower_high_watermark(log: LogView, leader_high_watermark: int) -> int:
    """Return the committed end of this log, which is at most its own end."""
    return min(log.end_offset, leader_high_watermark)


# Divergence.


def truncation_point(log: LogView, leader_reported: OffsetAndEpoch) -> int:
    """Return where to truncate, given the leader's largest epoch not above ours and its end there.

    If this log has that epoch too, the common prefix ends at or below the lower of both ends.
    Otherwise truncate to the end of our largest epoch below it and ask again (279.2).
    """
    own = log.end_offset_for_epoch(leader_reported.epoch)
    if own is None:
        return min(leader_reported.offset, log.start.offset)
    if own.epoch == leader_reported.epoch:
        return min(own.offset, leader_reported.offset)
    return own.offset


def _problem_with_divergence(core: CoreState, point: OffsetAndEpoch) -> str:
    if point.offset < 0 or point.epoch < 0:
        return f"diverging at {point}"
    if truncation_point(core.log, point) >= core.log.end_offset:
        return f"diverging at {point}, which is no end below {core.log.end}"
    return ""


def _resolve_divergence(core: CoreState, flight: InFlight, point: OffsetAndEpoch) -> None:
    """Truncate the log to the largest prefix that may be common, and fetch from there.

    A truncation below the high watermark is reported and refused (279.4).
    """
    log = core.log
    end_offset = truncation_point(log, point)
    if end_offset < core.high_watermark:
        core.event(TruncationRefused(end_offset, core.high_watermark))
        core.peer_failed(flight.peer)
        _resolve_divergence_with_leader(core, core.high_watermark, DivergenceReason.COMMITTED_CUT)
        return
    old_end = log.end
    log.truncate_to(end_offset, core.effect(Truncate(end_offset)))
    core.event(LogDiverged(end_offset, old_end, point))
    core.progress(LogTruncated(end_offset))
    if core.voters.truncate_to(end_offset):
        core.voters_changed()
