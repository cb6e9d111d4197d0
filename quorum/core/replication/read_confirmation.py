"""The leader's side of linearizable reads: rounds of echoes (ADR 9).

``read_rounds.ReadRounds`` counts the rounds; this module connects them with the replicas. A read is
this node's own, or represents all that wait at another replica (``read_forwarding``); both are
confirmed alike.
"""

from __future__ import annotations

from quorum.core.contract.output import ReadConfirmed, ReadFailed
from quorum.core.liveness import freshness
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse, ReadRound
from quorum.core.protocol.refusals import has_wrong_cluster, refusal_of_leader_request, refuse
from quorum.core.replication.fetch_answers import answer_held
from quorum.core.state.core_state import CoreState
from quorum.core.state.read_rounds import Asker, PendingRead
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.roles import Leader
from quorum.errors import ErrorCode
from quorum.types import NodeId


def read(core: CoreState, token: int) -> None:
    """Confirm that this node leads, or fail the read at once."""
    leader = core.role
    if isinstance(leader, Leader):
        read_as_leader(core, leader, token)
    else:
        core.progress(ReadFailed(token))


def read_as_leader(core: CoreState, leader: Leader, token: int) -> None:
    """Add a read to a round, or fail it at once.

    It fails if the leader has not committed a record of its own epoch: before that its high
    watermark may be below what an earlier leader acknowledged. It also fails if too many wait.
    """
    if not leader.can_write or len(leader.reads) >= core.config.pending_reads_max:
        core.progress(ReadFailed(token))
        return
    _add(core, leader, PendingRead(token, core.high_watermark))


def on_read_position(core: CoreState, sender: NodeId, request: ReadPositionRequest) -> None:
    """Confirm a position for the reads that wait at another replica.

    Any replica may ask, voter or not: the answer depends on the echoes, not on the sender.
    """
    leader = core.role
    error = _refusal(core, request)
    if error is not None or not isinstance(leader, Leader):
        refuse(core, sender, request, error or ErrorCode.NOT_LEADER_OR_FOLLOWER)
        return
    asker = Asker(sender, request.request_id)
    _add(core, leader, PendingRead(0, core.high_watermark, asker))


def _refusal(core: CoreState, request: ReadPositionRequest) -> ErrorCode | None:
    if has_wrong_cluster(core, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    if request.replica.id < -1 or request.replica.id == core.me.id:
        return ErrorCode.INVALID_REQUEST
    leader = core.role
    leads = isinstance(leader, Leader) and leader.established
    error = refusal_of_leader_request(core, request.epoch, leads=leads)
    if error is not None or not isinstance(leader, Leader):
        return error
    if not leader.can_write:
        return ErrorCode.OFFSET_NOT_AVAILABLE
    if len(leader.reads) >= core.config.pending_reads_max:
        return ErrorCode.QUEUE_FULL
    return None


def _add(core: CoreState, leader: Leader, read: PendingRead) -> None:
    if leader.reads.add(read, core.now_ms):
        _announce_round(core, leader)
        confirm_reads(core, leader)


def note_echo(core: CoreState, leader: Leader, progress: ReplicaProgress, echo: ReadRound) -> None:
    """Count a voter's echo of a read round of this epoch."""
    if (
        progress.is_voter
        and echo.epoch == core.epoch
        and progress.read_round < echo.number <= leader.reads.stamp.number
    ):
        progress.read_round = echo.number
        confirm_reads(core, leader)


def _announce_round(core: CoreState, leader: Leader) -> None:
    """Answer the held Fetches of voters, so that they learn of the round now."""
    for fetch in leader.held.take_without_echo(leader.reads.stamp):
        answer_held(core, leader, fetch)


def confirm_reads(core: CoreState, leader: Leader) -> None:
    """Confirm the reads that a majority of the voter set in force has echoed."""
    reads = leader.reads
    while True:
        number = reads.stamp.number
        echoes = 0
        for progress in leader.remote.values():
            if progress.read_round >= number:
                echoes += 1
        if echoes < leader.others_needed:
            return
        confirmed = reads.confirm(number, core.now_ms)
        freshness.note_confirmed_round(core, leader)
        for read in confirmed:
            _notify(core, read)
        if not reads.current:
            return
        _announce_round(core, leader)


def _notify(core: CoreState, read: PendingRead) -> None:
    asker = read.asker
    if asker is None:
        core.progress(ReadConfirmed(read.token, read.read_offset))
        return
    core.send(
        asker.sender,
        ReadPositionResponse(
            asker.request_id, ErrorCode.NONE, core.me.id, core.epoch, read.read_offset
        ),
    )
