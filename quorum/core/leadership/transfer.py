"""Leadership transfer: the leader lets a chosen voter campaign while it still leads.

The leader takes no further writes and waits until the target has its whole log and all of it is
committed. Then it asks the target to campaign, by an EndQuorumEpoch with ``campaign_now``. The
target skips the pre-vote, which protects a live leader, because the leader itself asked. The other
voters receive only the vote request, so none of them competes.

The leader continues until the target's newer epoch replaces it. If the target refuses, does not
answer or is not elected in time, writes continue as before the request. After ``ShutDown`` the
leader then resigns in the ordinary way.

See: Raft dissertation section 3.10; KIP-595.
"""

from __future__ import annotations

from quorum.control_records import Origin
from quorum.core.contract.events import TransferStarted
from quorum.core.contract.local_events import TransferLeadership
from quorum.core.contract.outcomes import TransferOutcome
from quorum.core.contract.output import RequestSettled
from quorum.core.contract.reasons import RoleChangeReason
from quorum.core.leadership.leadership_term import resign
from quorum.core.messages.epoch_messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from quorum.core.protocol.requests import next_attempt
from quorum.core.protocol.responses import learn_from_response
from quorum.core.protocol.role_transitions import NO_TOKEN, end_transfer
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.replica_table import preferred_successors
from quorum.core.state.roles import Leader, Transfer
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, NodeId, ReplicaKey


def begin(core: CoreState, asked: TransferLeadership) -> None:
    """Begin to transfer leadership to ``asked.target``, or answer with the refusal."""
    leader = core.role
    if not isinstance(leader, Leader) or not leader.established:
        _answer(core, asked.token, ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node does not lead")
        return
    if asked.target == core.me.id:
        _answer(core, asked.token, ErrorCode.NONE, f"node {core.me.id} leads already")
        return
    if leader.transfer is not None:
        _answer(
            core, asked.token, ErrorCode.REQUEST_TIMED_OUT, "another transfer has not ended yet"
        )
        return
    target = _target(core, leader, asked.target)
    if isinstance(target, str):
        code = ErrorCode.INELIGIBLE_REPLICA
        if asked.target != NO_NODE and asked.target not in leader.remote:
            code = ErrorCode.VOTER_NOT_FOUND
        _answer(core, asked.token, code, target)
        return
    _start(core, leader, target, asked.token, asked.origin)


def transfer_leadership(core: CoreState, leader: Leader) -> None:
    """Transfer leadership before a shutdown, or resign at once if no voter can take over."""
    if leader.transfer is not None:
        return
    target = _target(core, leader, NO_NODE)
    if not leader.can_write or isinstance(target, str):
        resign(core, leader, RoleChangeReason.SHUT_DOWN)
        return
    origin = Origin(reason=f"node {core.me.id} shuts down")
    _start(core, leader, target, NO_TOKEN, origin)


def begin_for_observer(core: CoreState, leader: Leader, observer: ReplicaKey) -> None:
    """Begin a transfer to the best voter, so that ``observer`` can follow the next epoch.

    No caller gets an answer. Does nothing while no other voter could take over.
    """
    target = _target(core, leader, NO_NODE)
    if not isinstance(target, str):
        origin = Origin(reason=f"observer {observer.id} is in a later epoch and cannot follow")
        _start(core, leader, target, NO_TOKEN, origin, observer)


def _start(
    core: CoreState,
    leader: Leader,
    target: ReplicaProgress,
    token: int,
    origin: Origin | None,
    observer: ReplicaKey | None = None,
) -> None:
    leader.transfer = Transfer(
        target.key,
        token,
        core.now_ms + core.config.transfer_timeout_ms,
        PeerRequest(target.key.id, Purpose.TRANSFER),
        origin,
    )
    core.event(TransferStarted(target.key, core.epoch, core.log.end_offset, observer))
    poll(core, leader)


def _target(core: CoreState, leader: Leader, wanted: NodeId) -> ReplicaProgress | str:
    """Return the voter to transfer leadership to, or the reason why there is none."""
    if not leader.remote:
        return "there is no other voter"
    if wanted != NO_NODE:
        found = leader.remote.get(wanted)
        if found is None:
            return f"node {wanted} is not a voter"
        return why_not(core, found) or found
    able = [each for each in leader.remote.values() if not why_not(core, each)]
    if not able:
        return "no other voter is caught up: " + "; ".join(
            why_not(core, each) for each in leader.remote.values()
        )
    return min(able, key=lambda each: (-each.end_offset, each.key.id))


def why_not(core: CoreState, replica: ReplicaProgress) -> str:
    """Return why a voter could not take over in time, as far as known; empty if it could."""
    name = f"voter {replica.key.id}"
    if replica.last_fetch_ms < 0:
        return f"{name} has not fetched from this leader yet"
    silent_ms = core.now_ms - replica.last_fetch_ms
    if silent_ms > core.config.fetch_timeout_ms:
        return f"{name} has been silent for {silent_ms} ms"
    if replica.last_caught_up_ms < core.now_ms - core.config.fetch_timeout_ms:
        lag = core.log.end_offset - replica.end_offset
        return f"{name} is {lag} records behind and has not caught up lately"
    return ""


def poll(core: CoreState, leader: Leader) -> None:
    """Ask the target to campaign once it has the whole log; give up at the deadline."""
    transfer = leader.transfer
    if transfer is None:
        return
    target = leader.remote.get(transfer.target.id)
    if target is None or not target.key.matches(transfer.target):
        _give_up(core, leader, ErrorCode.VOTER_NOT_FOUND, TransferOutcome.NO_VOTER)
        return
    if core.now_ms >= transfer.deadline_ms:
        core.fired(Timer.TRANSFER)
        _give_up(core, leader, ErrorCode.REQUEST_TIMED_OUT, *_what_was_missing(core, transfer))
        return
    end_offset = core.log.end_offset
    is_level = target.end_offset >= end_offset and core.high_watermark >= end_offset
    if transfer.request.request_id or not is_level:
        return
    leader.asked_to_campaign = target.key
    core.send(
        target.key.id,
        EndQuorumEpochRequest(
            next_attempt(core, transfer.request),
            core.cluster_id,
            core.me,
            core.epoch,
            (target.key, *(key for key in preferred_successors(leader) if key != target.key)),
            core.answering_endpoints(),
            campaign_now=True,
            origin=transfer.origin,
        ),
    )


def _what_was_missing(core: CoreState, transfer: Transfer) -> tuple[TransferOutcome, str]:
    within = f"within {core.config.transfer_timeout_ms} ms"
    if transfer.request.request_id:
        return TransferOutcome.NOT_ELECTED, within
    return TransferOutcome.NOT_CAUGHT_UP, f"{core.log.end_offset} {within}"


def on_response(core: CoreState, sender: NodeId, response: EndQuorumEpochResponse) -> None:
    """Process the target's answer."""
    leader = core.role
    learn_from_response(core, sender, response)
    if (
        isinstance(leader, Leader)
        and leader.transfer is not None
        and response.error != ErrorCode.NONE
    ):
        _give_up(core, leader, response.error, TransferOutcome.REFUSED, response.error.name)


def on_failed(core: CoreState) -> None:
    """End the transfer to an unreachable target."""
    if isinstance(core.role, Leader):
        _give_up(core, core.role, ErrorCode.BROKER_NOT_AVAILABLE, TransferOutcome.UNREACHABLE)


def _give_up(
    core: CoreState, leader: Leader, error: ErrorCode, outcome: TransferOutcome, detail: str = ""
) -> None:
    end_transfer(core, leader, error, outcome, detail)
    if core.process.is_shutting_down:
        resign(core, leader, RoleChangeReason.SHUT_DOWN)


def _answer(core: CoreState, token: int, error: ErrorCode, message: str) -> None:
    if token != NO_TOKEN:
        core.progress(RequestSettled(token, error, message))
