"""The follower's side of Fetch: asking, appending, truncating, and noticing a silent leader.

Only one Fetch or FetchSnapshot is under way at any time, or the same offsets could be
appended twice. A Fetch after an append waits for the disk (``CoreState.acknowledge``).

See: KIP-595; KIP-279 (279.2, 279.4); raft-protocol sections 7 and 8.
"""

from __future__ import annotations

from quorum.core.election import stand
from quorum.core.events import LogDiverged, RecordsAppended, TruncationRefused
from quorum.core.held_fetches import NEVER_MS
from quorum.core.log_view import LogView
from quorum.core.messages import NO_ROUND, FetchRequest, FetchResponse, ReceivedRecords
from quorum.core.output import Append, LogTruncated, Truncate
from quorum.core.peers import InFlight
from quorum.core.refusals import ignore
from quorum.core.responses import learn_from_response, note_leader_contact, take_in_flight
from quorum.core.roles import Follower, Unattached
from quorum.core.snapshot_transfer import (
    abandon_download,
    begin_download,
    is_downloading,
    pursue_download,
    why_not_download,
)
from quorum.core.state import CoreState
from quorum.core.transitions import lose_leader
from quorum.core.trimming import follow_log_start
from quorum.core.voters import VoterSet
from quorum.errors import ErrorCode
from quorum.types import NodeId, OffsetAndEpoch


def pursue_follower(core: CoreState, role: Follower) -> None:
    """Stand when the leader is gone or silent; otherwise keep a Fetch under way."""
    if core.is_voter and core.now_ms >= min(role.stand_at_ms, role.fetch_deadline_ms):
        is_gone = core.now_ms >= role.stand_at_ms
        reason = "the leader is gone" if is_gone else "the fetch timer expired"
        if stand(core, fail_fast=is_gone, reason=reason):
            return
        # It may not stand itself, but must not stand in the way of those who may.
        role.has_fetched = False
        role.stand_at_ms = NEVER_MS
        role.fetch_deadline_ms = core.now_ms + core.config.fetch_timeout_ms
    pursue_fetch(core)


def pursue_fetch(core: CoreState) -> None:
    """Keep one Fetch under way: to the leader, or to anybody who may know it."""
    flight = core.in_flight
    if flight is not None and flight.deadline_ms is not None:
        if core.now_ms >= flight.deadline_ms:
            core.in_flight = None
            core.peers.failed(flight.peer, core.now_ms)
        elif is_search_to_end(core, flight):
            core.in_flight = None
    if core.in_flight is not None:
        return
    peer = _whom_to_ask(core)
    if peer is None:
        return
    if not is_downloading(core, peer) or pursue_download(core, peer):
        _fetch_from(core, peer)


def is_search_to_end(core: CoreState, flight: InFlight) -> bool:
    """Whether a question to another peer stands in the way of the leader, who is ready again.

    Its answer is not missed: it could only have told who leads.
    """
    role = core.role
    return (
        isinstance(role, Follower)
        and flight.peer != role.leader_id
        and core.now_ms >= core.peers.ready_ms(role.leader_id)
    )


def _whom_to_ask(core: CoreState) -> NodeId | None:
    """The leader if it may be asked, else a random peer that may know it; None for nobody."""
    role = core.role
    leader_id = role.leader_id if isinstance(role, Follower) else None
    if leader_id is not None and core.now_ms >= core.peers.ready_ms(leader_id):
        return leader_id
    if isinstance(role, Unattached) and core.now_ms < role.discover_at_ms:
        return None
    ready = [
        peer
        for peer in discovery_peers(core)
        if peer != leader_id and core.now_ms >= core.peers.ready_ms(peer)
    ]
    return core.rng.choice(ready) if ready else None


def discovery_peers(core: CoreState) -> tuple[NodeId, ...]:
    """Who may know the leader: the bootstrap servers, without any the other voters."""
    if core.bootstrap:
        return core.bootstrap
    return tuple(voter.key.id for voter in core.voters.latest.others(core.me))


def _fetch_from(core: CoreState, peer: NodeId) -> None:
    role, log, config = core.role, core.log, core.config
    request_id = core.next_request_id()
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
        ),
    )
    core.in_flight = InFlight(
        request_id,
        peer,
        is_snapshot=False,
        ticket=ticket,
        deadline_ms=(
            None if ticket > core.durable_ticket else core.now_ms + config.request_timeout_ms
        ),
    )


def on_fetch_response(core: CoreState, sender: NodeId, response: FetchResponse) -> None:
    """Take one of the three answers, or learn who leads."""
    flight = take_in_flight(core, sender, response, is_snapshot=False)
    if flight is None:
        return
    epoch, role_before = core.epoch, core.role
    is_current = learn_from_response(core, sender, response)
    if core.epoch != epoch:
        return
    role = core.role
    problem = _problem_with(core, response) if is_current else "not of this epoch"
    if problem and is_current and response.error == ErrorCode.NONE:
        ignore(core, sender, response, problem, is_violation=True)
    if problem or not isinstance(role, Follower):
        core.peers.failed(flight.peer, core.now_ms)
        if role is role_before:
            _notice_disowned_epoch(core, flight, response)
        return
    note_leader_contact(core, role, flight.peer, response.read_round)
    if response.diverging is not None:
        _resolve_divergence(core, flight, response.diverging)
        return
    if response.snapshot_id is not None:
        begin_download(core, role.leader_id, response.snapshot_id)
        return
    abandon_download(core, "the leader has the records")
    if response.received is not None:
        _append_received(core, response.received)
    core.raise_high_watermark(follower_high_watermark(core.log, response.high_watermark))
    follow_log_start(core, response.log_start_offset)


def _notice_disowned_epoch(core: CoreState, flight: InFlight, response: FetchResponse) -> None:
    """The leader itself says that it leads no longer: no need to wait for the fetch timer."""
    role = core.role
    if (
        isinstance(role, Follower)
        and flight.peer == role.leader_id
        and response.epoch == core.epoch
        and response.error == ErrorCode.NOT_LEADER_OR_FOLLOWER
        and core.lost_leader is None
    ):
        lose_leader(core, core.rng.randint(0, core.config.lost_leader_jitter_ms))


def _problem_with(core: CoreState, response: FetchResponse) -> str:
    """Why an answer of this epoch cannot be used; empty when it can."""
    role = core.role
    if response.error != ErrorCode.NONE:
        return response.error.name
    if not isinstance(role, Follower) or response.leader_id != role.leader_id:
        return f"an answer by {response.leader_id}, which does not lead"
    if response.diverging is not None:
        return _problem_with_divergence(core, response.diverging)
    if response.snapshot_id is not None:
        return why_not_download(core, response.snapshot_id)
    if response.received is not None:
        return problem_with_records(core, response.received)
    return ""


def problem_with_records(core: CoreState, records: ReceivedRecords) -> str:
    """Why records cannot follow this log in this epoch; empty when they can."""
    log = core.log
    if records.base_offset != log.end_offset or records.end_offset <= records.base_offset:
        return (
            f"records [{records.base_offset}, {records.end_offset}) do not follow log end "
            f"{log.end_offset}"
        )
    if not records.epochs or records.epochs[0].start_offset != records.base_offset:
        return "records without the epoch of their first batch"
    epoch, offset = log.end_epoch - 1, records.base_offset - 1
    for index, entry in enumerate(records.epochs):
        if entry.epoch <= epoch or not offset < entry.start_offset < records.end_offset:
            return f"epoch {entry.epoch} at {entry.start_offset} after epoch {epoch}"
        epoch, offset = entry.epoch, entry.start_offset
        if index == 0 and epoch < log.end_epoch:
            return f"epoch {epoch} after epoch {log.end_epoch}"
    if epoch > core.epoch:
        return f"epoch {epoch} in an answer of epoch {core.epoch}"
    at = max(records.base_offset - 1, core.voters.latest_offset)
    for each in records.voters:
        if not at < each.offset < records.end_offset or not each.voters:
            return f"a voters record at {each.offset}"
        at = each.offset
        try:
            VoterSet(each.voters)
        except ValueError as error:
            return f"a voters record at {each.offset}: {error}"
    return ""


def _append_received(core: CoreState, records: ReceivedRecords) -> None:
    epoch = records.epochs[-1].epoch
    core.log.append(
        records.end_offset,
        records.epochs,
        core.effect(
            Append(
                records.base_offset,
                records.end_offset,
                epoch,
                records.payload,
                epochs=records.epochs,
            )
        ),
    )
    core.event(RecordsAppended(records.base_offset, records.end_offset, epoch))
    for each in records.voters:
        core.voters.add(each.offset, VoterSet(each.voters))
    if records.voters:
        core.voters_changed()


def follower_high_watermark(log: LogView, leader_high_watermark: int) -> int:
    """What of this log is committed: never more than it has."""
    return min(log.end_offset, leader_high_watermark)


# Divergence.


def truncation_point(log: LogView, leader_said: OffsetAndEpoch) -> int:
    """Where to cut, given the leader's largest epoch not above ours and its end there.

    If that epoch is known here, the common prefix cannot reach beyond either end of it;
    otherwise cut our largest epoch below it and ask again (279.2).
    """
    own = log.end_offset_for_epoch(leader_said.epoch)
    if own is None:
        return min(leader_said.offset, log.start.offset)
    if own.epoch == leader_said.epoch:
        return min(own.offset, leader_said.offset)
    return own.offset


def _problem_with_divergence(core: CoreState, point: OffsetAndEpoch) -> str:
    if point.offset < 0 or point.epoch < 0:
        return f"diverging at {point}"
    if truncation_point(core.log, point) >= core.log.end_offset:
        return f"diverging at {point}, which is no end below {core.log.end}"
    return ""


def _resolve_divergence(core: CoreState, flight: InFlight, point: OffsetAndEpoch) -> None:
    """Cut the log to the largest prefix that may be common, and ask again from there.

    Nothing below the high watermark is ever cut (279.4): such a request is reported and left.
    """
    log = core.log
    end_offset = truncation_point(log, point)
    if end_offset < core.high_watermark:
        core.event(TruncationRefused(end_offset, core.high_watermark))
        core.peers.failed(flight.peer, core.now_ms)
        return
    old_end = log.end
    log.truncate_to(end_offset, core.effect(Truncate(end_offset)))
    core.event(LogDiverged(end_offset, old_end, point))
    core.progress(LogTruncated(end_offset))
    if core.voters.truncate_to(end_offset):
        core.voters_changed()
