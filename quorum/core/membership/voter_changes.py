"""Change the voter set: add, remove and update voters, by the leader, one at a time.

The steps are: checks, a probe of a new endpoint, the voters record, commit. The new set is in force
from the append on, here and on every replica, and reverts if the record is truncated. A leader that
removes itself does not count itself from the append on, and resigns when the record is committed.

The probe is a BeginQuorumEpoch to the replica at its endpoint. Only the process with this id and
directory that has adopted this epoch accepts it (docs/adr has the reasons).

See: KIP-853; ADR 30; Raft dissertation sections 4.1 to 4.3.
"""

from __future__ import annotations

from typing import assert_never

from quorum.control_records import Origin, Voters
from quorum.core.contract.events import VoterChangeStarted
from quorum.core.contract.local_events import AddVoter, RemoveVoter, UpdateVoter
from quorum.core.contract.output import Append, PeerEndpoints
from quorum.core.membership.voter_change_checks import (
    as_supported,
    why_not_begin,
    why_not_caught_up,
    why_not_supported,
)
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from quorum.core.protocol.requests import is_to_be_sent, next_attempt, retry_later
from quorum.core.protocol.responses import learn_from_response
from quorum.core.protocol.voter_change_answers import answer, end
from quorum.core.replication.commitment import advance_high_watermark, append, serve_held
from quorum.core.replication.read_confirmation import confirm_reads
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest
from quorum.core.state.pending_change import (
    ChangeKind,
    LocalAsker,
    PendingChange,
    PendingChangeView,
)
from quorum.core.state.replica_table import build_remote, check_quorum_deadline, progress_of
from quorum.core.state.roles import Leader
from quorum.core.state.timers import Timer
from quorum.core.voters.voter_set import VoterSet
from quorum.errors import ErrorCode
from quorum.types import NodeId, ReplicaKey, Voter

# Beginning.


def on_request(core: CoreState, request: AddVoter | RemoveVoter | UpdateVoter) -> None:
    """Begin a change that an operator requests on this node."""
    match request:
        case AddVoter():
            change = PendingChange(
                ChangeKind.ADD,
                request.voter,
                LocalAsker(request.token),
                ack_when_committed=request.ack_when_committed,
                readmit=request.readmit,
                origin=request.origin,
            )
        case RemoveVoter():
            change = PendingChange(
                ChangeKind.REMOVE,
                Voter(request.key),
                LocalAsker(request.token),
                origin=request.origin,
            )
        case UpdateVoter():
            change = PendingChange(
                ChangeKind.UPDATE,
                request.voter,
                LocalAsker(request.token),
                ack_when_committed=False,
                origin=request.origin,
            )
        case _:
            assert_never(request)
    begin(core, change, request.timeout_ms)


def begin(core: CoreState, change: PendingChange, timeout_ms: int = 0) -> None:
    """Begin a change, or answer with the refusal at once.

    It ends after ``request_timeout_ms``, or sooner after a positive ``timeout_ms``.
    """
    leader = core.role
    if not isinstance(leader, Leader) or not leader.established:
        end(core, change, ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead")
        return
    if core.process.is_shutting_down:
        end(core, change, ErrorCode.BROKER_NOT_AVAILABLE, "this leader is shutting down")
        return
    _end_if_over(core, leader)
    refusal = why_not_begin(core, leader, change)
    if refusal is not None:
        end(core, change, *refusal)
        return
    limit_ms = core.config.request_timeout_ms
    change.deadline_ms = core.now_ms + (min(timeout_ms, limit_ms) if timeout_ms > 0 else limit_ms)
    leader.change = change
    leader.membership_due_ms = core.now_ms
    core.event(VoterChangeStarted(change.kind.value, change.voter.key))
    if change.kind is not ChangeKind.REMOVE and _is_to_be_probed(core, change.voter):
        core.progress(PeerEndpoints(change.voter.key.id, change.voter.endpoints))
        _probe(core, change)
    else:
        _append_change(core, leader, change)


def _is_to_be_probed(core: CoreState, voter: Voter) -> bool:
    """Whether the endpoint or the versions are new; this node itself needs no probe."""
    known = core.voters.latest.get(voter.key.id)
    return voter.key.id != core.me.id and (
        known is None
        or voter.endpoints != known.endpoints
        or voter.min_supported_version != known.min_supported_version
        or voter.max_supported_version != known.max_supported_version
    )


# Probing.


def _probe(core: CoreState, change: PendingChange) -> None:
    request_id = next_attempt(core, change.probe)
    # No timeout of its own: the deadline of the change ends the probe too.
    change.probe.due_ms = NEVER_MS
    core.send(
        change.voter.key.id,
        BeginQuorumEpochRequest(
            request_id,
            core.cluster_id,
            change.voter.key,
            core.me,
            core.epoch,
            core.answering_endpoints(),
        ),
    )


def on_probe_response(
    core: CoreState, leader: Leader, sender: NodeId, response: BeginQuorumEpochResponse
) -> None:
    """Append the record if the right replica answered the probe and is caught up."""
    change = leader.change
    if change is None:
        return
    if not learn_from_response(core, sender, response):
        # If a newer epoch ended this leadership, the change has ended with it.
        on_probe_failed(core, change.probe)
    elif response.error != ErrorCode.NONE:
        _give_up(
            core,
            leader,
            change,
            ErrorCode.REQUEST_TIMED_OUT,
            f"the endpoint of node {change.voter.key.id} answers {response.error.name}",
        )
    else:
        refusal = why_not_supported(core, change, response.supported)
        if leader.transfer is not None:
            refusal = ErrorCode.REQUEST_TIMED_OUT, "a leadership transfer is under way"
        elif refusal is None and change.kind is ChangeKind.ADD:
            refusal = why_not_caught_up(core, leader, change.voter)
        if refusal is not None:
            _give_up(core, leader, change, *refusal)
        else:
            change.voter = as_supported(change.voter, response.supported)
            progress = progress_of(leader, change.voter.key)
            if progress is not None:
                progress.note_supported(response.supported, now_ms=core.now_ms)
            _append_change(core, leader, change)


def on_probe_failed(
    core: CoreState,
    request: PeerRequest,
    refusal: str = "",
    code: ErrorCode = ErrorCode.NONE,
) -> None:
    """Repeat a probe of an unreachable endpoint until the change's deadline."""
    leader = core.role
    if isinstance(leader, Leader) and leader.change is not None:
        leader.change.probe_refusal, leader.change.probe_refusal_code = refusal, code
        retry_later(core, request)
        leader.membership_due_ms = min(leader.membership_due_ms, request.due_ms)


def _give_up(
    core: CoreState, leader: Leader, change: PendingChange, error: ErrorCode, message: str
) -> None:
    """End a change that is not committed; without a record, restore its voter's endpoints."""
    leader.change = None
    before = core.voters.latest.endpoints_of(change.voter.key.id)
    if before and change.offset < 0:
        core.progress(PeerEndpoints(change.voter.key.id, before))
    end(core, change, error, message)


# Appending.


def _append_change(core: CoreState, leader: Leader, change: PendingChange) -> None:
    before, voter = core.voters.latest, change.voter
    readmitted: tuple[ReplicaKey, ...] = ()
    match change.kind:
        case ChangeKind.ADD:
            after = before.adding(voter)
            readmitted = tuple(key for key in before.removed if key == voter.key)
        case ChangeKind.REMOVE:
            after = before.removing(voter.key)
        case ChangeKind.UPDATE:
            after = before.updating(voter)
        case _:
            assert_never(change.kind)
    if after == before:
        leader.change = None
        change.offset = core.voters.latest_offset
        end(core, change, ErrorCode.NONE, "already in effect")
        return
    change.offset = _append_voters(core, leader, after, readmitted, change.origin)
    if not change.ack_when_committed:
        answer(core, change, ErrorCode.NONE, "")
    # No Fetch triggers this: the new set may need fewer votes than the old one.
    advance_high_watermark(core, leader)
    confirm_reads(core, leader)


def _append_voters(
    core: CoreState,
    leader: Leader,
    voters: VoterSet,
    readmitted: tuple[ReplicaKey, ...],
    origin: Origin | None,
) -> int:
    """Append a voter set, put it in force and return the offset of its record."""
    offset = core.log.end_offset
    record = Voters(
        voters.voters,
        removed=voters.removed,
        readmitted=readmitted,
        incarnation=voters.incarnation,
        origin=origin,
    )
    # In force before any message with the new log leaves this node.
    append(core, leader, Append(offset, offset + 1, core.epoch, controls=(record,)))
    core.voters.add(offset, voters)
    core.voters_changed()
    build_remote(core, leader)
    # A new voter is served at once with the record that makes it one.
    serve_held(core, leader)
    leader.check_quorum_deadline_ms = check_quorum_deadline(core)
    leader.upkeep_due_ms = core.now_ms
    return offset


# Ending.


def poll_change(core: CoreState, leader: Leader) -> bool:
    """Do what is due; return whether this leader's own removal is committed."""
    _end_if_over(core, leader)
    change = leader.change
    if change is not None and change.offset < 0 and is_to_be_sent(core, change.probe):
        _probe(core, change)
    leader.membership_due_ms = NEVER_MS
    if leader.change is not None:
        leader.membership_due_ms = leader.change.deadline_ms
        if leader.change.offset < 0:
            leader.membership_due_ms = min(leader.membership_due_ms, leader.change.probe.due_ms)
    return not core.is_voter and core.voters.latest_offset < core.high_watermark


def _end_if_over(core: CoreState, leader: Leader) -> None:
    change = leader.change
    if change is None:
        return
    if 0 <= change.offset < core.high_watermark:
        leader.change = None
        end(core, change, ErrorCode.NONE, "")
    elif core.now_ms >= change.deadline_ms:
        core.fired(Timer.CHANGE)
        if change.probe_refusal and change.offset < 0:
            # The replica is unsuitable, not slow: a retry fails until one side is changed.
            message = f"node {change.voter.key.id} cannot take part: {change.probe_refusal}"
            _give_up(
                core,
                leader,
                change,
                change.probe_refusal_code or ErrorCode.INVALID_REQUEST,
                message,
            )
            return
        what = "committed" if change.offset >= 0 else "reached"
        _give_up(core, leader, change, ErrorCode.REQUEST_TIMED_OUT, f"not {what} in time")


def pending_view(core: CoreState) -> PendingChangeView | None:
    """Return the change under way, for describe-quorum; None on all nodes but its leader."""
    leader = core.role
    change = leader.change if isinstance(leader, Leader) else None
    if change is None:
        return None
    return PendingChangeView(change.kind.value, change.voter, change.offset, change.deadline_ms)
