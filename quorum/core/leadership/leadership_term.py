"""Leadership of an epoch: begin once it is durable, announce it, do its duties, resign.

See: KIP-595 (BeginQuorumEpoch, check quorum); ADR 7.
"""

from __future__ import annotations

from quorum.control_records import ControlRecord, KRaftVersion, LeaderChange, Voters
from quorum.core.contract.output import AbandonDownload, Append
from quorum.core.contract.reasons import IgnoreReason, RoleChangeCause, RoleChangeReason
from quorum.core.membership import self_registration, voter_changes
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from quorum.core.protocol.epoch_claims import refusal_of_leader_claim
from quorum.core.protocol.refusals import (
    has_wrong_cluster,
    ignore,
    is_addressed_to,
    refusal_of_voter_request,
    refuse,
)
from quorum.core.protocol.requests import answered, next_attempt, retry_later
from quorum.core.protocol.responses import learn_from_response
from quorum.core.protocol.role_transitions import become_follower, become_resigned, follow_hint
from quorum.core.replication.commitment import append
from quorum.core.replication.fetch_serving import answer_due
from quorum.core.replication.trimming import trim_as_leader
from quorum.core.state.core_state import CoreState
from quorum.core.state.known_leader import NamedBy
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.replica_progress import VERSIONS_KNOWN_MS, ReplicaProgress
from quorum.core.state.replica_table import (
    build_remote,
    check_quorum_deadline,
    forget_silent_observers,
    preferred_successors,
)
from quorum.core.state.roles import Leader, Prospective
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import EpochStart, NodeId

KRAFT_VERSION_WITH_VOTERS = 1


def leadership_is_durable(core: CoreState, leader: Leader) -> bool:
    """Whether "leader = self in this epoch" is on this node's disk."""
    return core.disk.durable_ticket >= leader.durable_with


def establish(core: CoreState, leader: Leader) -> None:
    """Begin to lead: append the epoch's first records and notify every voter.

    Called exactly once per leadership term, when ``leadership_is_durable``.
    """
    leader.established = True
    build_remote(core, leader)
    leader.check_quorum_deadline_ms = check_quorum_deadline(core)
    download = core.following.download
    if download is not None:
        core.effect(AbandonDownload(download.snapshot_id))
        core.following.download = None
    core.announce_leadership()
    controls = opening_records(core, leader)
    base_offset = core.log.end_offset
    append(
        core,
        leader,
        Append(
            base_offset,
            base_offset + len(controls),
            core.epoch,
            controls=controls,
            epochs=(EpochStart(core.epoch, base_offset),),
        ),
    )
    if isinstance(controls[-1], Voters):
        core.voters.add(base_offset + len(controls) - 1, core.voters.latest)
        core.voters_changed()
    _upkeep(core, leader)


def opening_records(core: CoreState, leader: Leader) -> tuple[ControlRecord, ...]:
    """Return the control records of the epoch's first batch.

    A voter set that only the bootstrap checkpoint contains is written into the log, because that
    checkpoint is never replicated.
    """
    voters = core.voters.latest
    change = LeaderChange(core.me.id, voters.ids, leader.granting, origin=leader.origin)
    if core.voters.latest_offset >= 0:
        return (change,)
    return (
        change,
        KRaftVersion(KRAFT_VERSION_WITH_VOTERS),
        Voters(voters.voters, removed=voters.removed, incarnation=voters.incarnation),
    )


def poll_leader(core: CoreState, leader: Leader) -> None:
    """Do what is due: establish leadership, answer held Fetches, upkeep, check quorum."""
    if not leader.established:
        # It requested its votes before replay stopped.
        resign_if_replay_stopped(core)
        if core.role is leader and leadership_is_durable(core, leader):
            establish(core, leader)
        return
    now_ms = core.now_ms
    if leader.remote and now_ms >= leader.check_quorum_deadline_ms:
        core.fired(Timer.CHECK_QUORUM)
        resign(core, leader, RoleChangeReason.QUORUM_LOST)
        return
    if now_ms >= leader.membership_due_ms and voter_changes.poll_change(core, leader):
        resign(core, leader, RoleChangeReason.REMOVED)
        return
    if now_ms >= leader.held.earliest_ms:
        answer_due(core, leader)
    if now_ms >= leader.upkeep_due_ms:
        core.fired(Timer.UPKEEP)
        _upkeep(core, leader)


def resign(core: CoreState, leader: Leader, reason: RoleChangeReason) -> None:
    """Resign; the preferred successors are the voters with the highest log ends."""
    become_resigned(core, preferred_successors(leader), cause=RoleChangeCause(reason))


def resign_if_replay_stopped(core: CoreState) -> None:
    """Resign if this replica applies no more records, because it could not answer writes."""
    role = core.role
    if core.process.replay_stopped and isinstance(role, Leader):
        resign(core, role, RoleChangeReason.REPLAY_STOPPED)


def _upkeep(core: CoreState, leader: Leader) -> None:
    """Send BeginQuorumEpoch to silent voters, forget silent observers, trim the log.

    Each BeginQuorumEpoch response carries the voter's supported versions. A voter whose versions
    are older than ``VERSIONS_KNOWN_MS`` is asked again, silent or not.
    """
    period_ms = max(1, core.config.fetch_timeout_ms // 2)
    for progress in leader.remote.values():
        if core.now_ms >= progress.begin.due_ms:
            is_silent = (
                progress.last_fetch_ms < 0 or core.now_ms - progress.live_since_ms >= period_ms
            )
            if is_silent or core.now_ms - progress.supported_ms >= VERSIONS_KNOWN_MS:
                _count_reminder(core, progress)
                _send_begin(core, progress)
            progress.begin.due_ms = core.now_ms + period_ms
    forget_silent_observers(core, leader)
    trim_as_leader(core, leader)
    leader.upkeep_due_ms = min(
        (progress.begin.due_ms for progress in leader.remote.values()),
        default=core.now_ms + period_ms,
    )
    self_registration.poll_as_leader(core, leader)


def _count_reminder(core: CoreState, progress: ReplicaProgress) -> None:
    if not progress.begin.due_ms:
        return  # the first request of a leadership term waits for no timer
    if progress.begin.failures and not progress.begin.request_id:
        core.fired(Timer.RETRY_BACKOFF, Purpose.BEGIN_EPOCH)
    else:
        core.fired(Timer.BEGIN_QUORUM)


def _send_begin(core: CoreState, progress: ReplicaProgress) -> None:
    core.send(
        progress.key.id,
        BeginQuorumEpochRequest(
            next_attempt(core, progress.begin),
            core.cluster_id,
            progress.key,
            core.me,
            core.epoch,
            core.answering_endpoints(),
        ),
    )


def on_begin_response(core: CoreState, sender: NodeId, response: BeginQuorumEpochResponse) -> None:
    """Record a voter's acknowledgement of this leadership term, or learn a newer epoch."""
    request = answered(core, sender, response, Purpose.BEGIN_EPOCH, Purpose.PROBE)
    leader = core.role
    if request is None or not isinstance(leader, Leader):
        return
    if request.purpose is Purpose.PROBE:
        voter_changes.on_probe_response(core, leader, sender, response)
    elif learn_from_response(core, sender, response) and response.error == ErrorCode.NONE:
        request.failures = 0
        progress = leader.remote[sender]
        progress.note_supported(response.supported, now_ms=core.now_ms)


def on_begin_failed(core: CoreState, request: PeerRequest) -> None:
    """Repeat an unanswered BeginQuorumEpoch after a back-off."""
    retry_later(core, request)
    if isinstance(core.role, Leader):
        core.role.upkeep_due_ms = min(core.role.upkeep_due_ms, request.due_ms)


# The receiving side.


def on_begin_request(
    core: CoreState, sender: NodeId, request: BeginQuorumEpochRequest, *, is_proven: bool
) -> None:
    """Follow a leader that announces itself.

    The answer promises to follow in this epoch, so it waits for the epoch to be durable.
    """
    error = (
        ErrorCode.INCONSISTENT_CLUSTER_ID
        if has_wrong_cluster(core, request.cluster_id)
        else refusal_of_voter_request(core, request.epoch, request.leader.id)
    )
    if error is None:
        error = refusal_of_leader_claim(core, request.leader, request.epoch)
    if error is None and not _follow_announced_leader(core, request, is_proven=is_proven):
        ignore(core, sender, request, IgnoreReason.SECOND_LEADER, is_violation=True)
        error = ErrorCode.INVALID_REQUEST
    if error is None and not is_addressed_to(core, request.voter):
        error = ErrorCode.INVALID_VOTER_KEY
    if error is not None:
        refuse(core, sender, request, error)
        return
    core.send(
        sender,
        BeginQuorumEpochResponse(
            request.request_id,
            ErrorCode.NONE,
            core.leader_id,
            core.epoch,
            core.answering_endpoints(),
            core.process.versions.supported,
        ),
    )


def _follow_announced_leader(
    core: CoreState, request: BeginQuorumEpochRequest, *, is_proven: bool
) -> bool:
    """Adopt the leader of a BeginQuorumEpoch; False if it contradicts what is known.

    It also proves the leader alive: a node that was about to campaign follows again. An unproven
    request (ADR 52) does not: pre-votes then find out whether the leader is alive.
    """
    leader_id, epoch, endpoints = request.leader.id, request.epoch, request.leader_endpoints
    cause = RoleChangeCause(RoleChangeReason.BEGIN_QUORUM_EPOCH)
    named_by = NamedBy.LEADER if is_proven else NamedBy.UNPROVEN
    if not follow_hint(core, leader_id, epoch, endpoints, cause=cause, named_by=named_by):
        return False
    role = core.role
    if not isinstance(role, Prospective):
        core.following.peers.succeeded(leader_id)
    elif is_proven:
        core.known_leader.lost = None
        become_follower(core, leader_id, epoch, endpoints, cause=cause, named_by=named_by)
    return True
