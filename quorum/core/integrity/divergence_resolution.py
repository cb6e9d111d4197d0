"""Find out which of two logs is wrong if their digests differ.

Both sides run the same steps independently, and each quarantines only its own log:

1. Verify the own files. If they are damaged, this replica is wrong.
2. Find the first differing batch by bisection, with digests from the other side.
3. Ask the other voters for their digests there. If a majority agrees with this replica, it is
   right and continues; a follower then campaigns against such a leader. If a majority agrees on
   another history, this replica is wrong. If all have answered without a majority, the question is
   undecidable: it stops and reports. A voter whose log does not reach there yet is asked again.

A wrong replica stores a vote floor, resigns and stops. Its next start sets the wrong records aside
and fetches them again. No replica truncates its log because of another's claim.

See: ADR 5 and 7.
"""

from __future__ import annotations

from quorum.core.contract.events import DivergenceResolutionEnded, DivergenceResolutionStarted
from quorum.core.contract.local_events import LogVerified
from quorum.core.contract.outcomes import DivergenceOutcome
from quorum.core.contract.output import VerifyLog
from quorum.core.contract.reasons import DisqualifiedReason, DivergenceReason
from quorum.core.integrity.quarantine import quarantine
from quorum.core.messages.chain_messages import (
    CHAIN_OFFSETS_MAX,
    ChainDigestRequest,
    ChainDigestResponse,
)
from quorum.core.protocol.requests import answered, is_to_be_sent, next_attempt, retry_later
from quorum.core.protocol.responses import learn_from_response
from quorum.core.protocol.role_transitions import lose_leader
from quorum.core.state.chain_state import DigestRequest, DivergenceResolution, Stage
from quorum.core.state.core_state import CoreState
from quorum.core.state.digest_tally import Difference, Held
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.roles import Follower
from quorum.core.voters import majority
from quorum.errors import ErrorCode
from quorum.types import NodeId

FAILURES_MAX = 3
"""Unanswered requests to the other side after which the search is abandoned."""
QUIET_MS = 60_000
"""Pause between a divergence that changed nothing here and the next one."""


def start_divergence_resolution(
    core: CoreState,
    conflicting_peer: NodeId,
    end_offset: int,
    reason: DivergenceReason,
    *,
    peer_votes: bool,
) -> None:
    """Begin to resolve a different history of ``conflicting_peer`` below ``end_offset``.

    One resolution runs at a time. During it and shortly after it, the call has no effect.
    """
    chain = core.chain
    if chain.resolution is not None or chain.quarantined_log or core.now_ms < chain.quiet_until_ms:
        return
    chain.resolution = DivergenceResolution(
        conflicting_peer,
        peer_votes,
        end_offset,
        core.log.cuts,
        low=core.log.start.offset - 1,
        high=end_offset,
    )
    core.event(DivergenceResolutionStarted(conflicting_peer, end_offset, reason))
    core.progress(VerifyLog(core.log.flushed_end, core.log.cuts))


def on_log_verified(core: CoreState, event: LogVerified) -> None:
    """Process the result of verifying the own files."""
    resolution = core.chain.resolution
    if event.cuts != core.log.cuts:
        # The log was truncated meanwhile, so the verifier may have read a half-done change.
        if resolution is not None:
            _drop(core, resolution, DivergenceOutcome.CUT)
    elif event.damaged_offset >= 0:
        if resolution is not None:
            _settle(core, resolution, DivergenceOutcome.DAMAGED, event.damaged_offset)
        quarantine(core, event.damaged_offset, event.cause, is_history=False)
    elif resolution is None or resolution.stage is not Stage.VERIFYING:
        return
    elif not resolution.peer_votes and core.leader_id != resolution.conflicting_peer:
        # An observer is wrong, or we are and its voters will report it; it cannot be asked.
        _settle(core, resolution, DivergenceOutcome.INTACT)
    else:
        resolution.stage = Stage.SEARCHING
        peer = resolution.conflicting_peer
        resolution.requests = {peer: DigestRequest(peer, core.now_ms)}
        core.chain.due_ms = core.now_ms


def poll_divergence_resolution(core: CoreState) -> None:
    """Send the requests that are due, and repeat unanswered ones."""
    resolution = core.chain.resolution
    core.chain.due_ms = NEVER_MS
    if resolution is None:
        return
    if resolution.cuts != core.log.cuts:
        _drop(core, resolution, DivergenceOutcome.CUT)
        return
    for request in resolution.requests.values():
        if request.held is not None:
            continue
        if is_to_be_sent(core, request):
            _ask(core, resolution, request)
        elif _is_given_up(core, resolution, request):
            return
        core.chain.due_ms = min(core.chain.due_ms, request.due_ms)


def _ask(core: CoreState, resolution: DivergenceResolution, request: DigestRequest) -> None:
    request.offsets = _offsets_to_ask(resolution)
    core.send(
        request.peer,
        ChainDigestRequest(
            next_attempt(core, request), core.cluster_id, core.me, core.epoch, request.offsets
        ),
    )


def _offsets_to_ask(resolution: DivergenceResolution) -> tuple[int, ...]:
    """Return the offsets to compare next, evenly spaced in the undecided range."""
    if resolution.stage is Stage.POLLING:
        return resolution.high, resolution.end_offset
    low, high = resolution.low, resolution.high
    parts = CHAIN_OFFSETS_MAX - 1
    inside = {low + (high - low) * part // parts for part in range(1, parts)}
    found = {offset for offset in inside if low < offset}
    return tuple(sorted(found if resolution.is_high_known else found | {high}))


def on_chain_digest_response(
    core: CoreState, sender: NodeId, response: ChainDigestResponse
) -> None:
    """Compare another replica's digests with this one's."""
    request = answered(core, sender, response, Purpose.CHAIN_DIGEST)
    resolution = core.chain.resolution
    if resolution is None or not isinstance(request, DigestRequest):
        return
    learn_from_response(core, sender, response)
    if (
        response.error != ErrorCode.NONE
        or not _speaks_for(core, sender, response)
        or response.offsets != request.offsets
        or not len(response.points) == len(response.own) == len(response.offsets)
    ):
        _failed(core, resolution, request)
        return
    core.chain.due_ms = core.now_ms
    if resolution.stage is Stage.SEARCHING:
        _narrow(core, resolution, response)
        request.due_ms = core.now_ms
    else:
        held = Held(*response.points)
        if _difference(resolution).is_undecided(held):
            _failed(core, resolution, request)
        else:
            request.held = held
        _tally(core, resolution)


def _speaks_for(core: CoreState, sender: NodeId, response: ChainDigestResponse) -> bool:
    """Whether the answer is about the log of the disk that was asked.

    Another disk may use a voter's node id by now; its log must not count as the voter's.
    """
    author = response.replica
    if author is None or author.id != sender:
        return False
    voter = core.voters.latest.get(sender)
    return voter is None or voter.key.matches(author)


def _narrow(
    core: CoreState, resolution: DivergenceResolution, response: ChainDigestResponse
) -> None:
    if not resolution.is_high_known:
        # The first request of a search reaches to the end of the compared range.
        resolution.own = resolution.own._replace(end=response.own[-1])
        resolution.theirs = resolution.theirs._replace(end=response.points[-1])
    for offset, own, theirs in zip(response.offsets, response.own, response.points, strict=True):
        if not own.value or not theirs.value:
            # One of the two logs begins above: nothing below can be compared.
            resolution.low, resolution.is_low_equal = offset, False
        elif own == theirs:
            resolution.low, resolution.is_low_equal = offset, True
            resolution.first_offset = own.offset
            if offset == resolution.high:
                # It was asked for, so no difference is known.
                _settle(core, resolution, DivergenceOutcome.EQUAL, -1)
                return
        else:
            resolution.high, resolution.is_high_known = offset, True
            resolution.own = resolution.own._replace(near=own)
            resolution.theirs = resolution.theirs._replace(near=theirs)
            break
    if not resolution.is_high_known:
        _settle(core, resolution, DivergenceOutcome.NOT_COMPARABLE, -1)
    elif resolution.high - resolution.low <= 1:
        _poll(core, resolution)


def _poll(core: CoreState, resolution: DivergenceResolution) -> None:
    """Ask the other voters for their digests at the first difference."""
    if not resolution.is_low_equal:
        # The difference is at or below the start of the shorter of the two logs.
        resolution.first_offset = 0
    resolution.stage = Stage.POLLING
    others = core.voters.latest.others(core.me)
    resolution.requests = {
        voter.key.id: DigestRequest(voter.key.id, core.now_ms)
        for voter in others
        if voter.key.id != resolution.conflicting_peer
    }
    _tally(core, resolution)


def _difference(resolution: DivergenceResolution) -> Difference:
    common_end = resolution.first_offset if resolution.is_low_equal else -1
    return Difference(resolution.own, resolution.theirs, common_end, resolution.end_offset)


def _tally(core: CoreState, resolution: DivergenceResolution) -> None:
    """Count the voters by the history they have behind the first difference."""
    voters = [each.held for each in resolution.requests.values() if each.held is not None]
    is_open = len(voters) < len(resolution.requests)
    if core.is_voter:
        voters.append(resolution.own)
    if resolution.peer_votes:
        voters.append(resolution.theirs)
    count = _difference(resolution).count(voters)
    needed = majority.quorum_size(len(core.voters.latest))
    first = resolution.first_offset
    if count.own >= needed:
        _win(core, resolution)
    elif max(count.theirs, count.others) >= needed:
        _settle(core, resolution, DivergenceOutcome.LOST, first)
        if first == 0 and resolution.is_low_equal:
            # Not corruption but a second bootstrap. The disk may have voted before its format.
            core.disqualify(
                DisqualifiedReason.FORMATTED_ANEW,
                "a majority's log has nothing in common with its own: it was formatted anew",
            )
        quarantine(core, first, _cause(resolution), is_history=True)
    elif not is_open:
        _settle(core, resolution, DivergenceOutcome.UNDECIDED, first)
        quarantine(
            core,
            first,
            f"{_cause(resolution)}; no majority of voters holds the same history, so it is "
            "undecidable which one is right",
            is_history=None,
        )


def _cause(resolution: DivergenceResolution) -> str:
    return (
        f"the log differs from that of node {resolution.conflicting_peer} "
        f"from offset {resolution.first_offset} on"
    )


def _win(core: CoreState, resolution: DivergenceResolution) -> None:
    _settle(core, resolution, DivergenceOutcome.WON, resolution.first_offset)
    role = core.role
    if isinstance(role, Follower) and role.leader_id == resolution.conflicting_peer:
        # This leader cannot commit with us, and every other correct replica concludes the same.
        lose_leader(core, core.rng.randint(0, core.config.lost_leader_jitter_ms))


def _settle(
    core: CoreState,
    resolution: DivergenceResolution,
    outcome: DivergenceOutcome,
    first_offset: int = -1,
) -> None:
    chain = core.chain
    chain.resolution = None
    core.requests.close_all(Purpose.CHAIN_DIGEST)
    chain.due_ms = NEVER_MS
    chain.quiet_until_ms = core.now_ms + QUIET_MS
    core.event(DivergenceResolutionEnded(resolution.conflicting_peer, outcome, first_offset))


def _drop(core: CoreState, resolution: DivergenceResolution, outcome: DivergenceOutcome) -> None:
    """End without a result. If the difference remains, the next resolution may begin at once."""
    _settle(core, resolution, outcome)
    core.chain.quiet_until_ms = core.now_ms


def on_digest_failed(core: CoreState, request: PeerRequest) -> None:
    """Repeat an unanswered request for digests after a back-off."""
    resolution = core.chain.resolution
    if resolution is not None and not _failed(core, resolution, request):
        core.chain.due_ms = min(core.chain.due_ms, request.due_ms)


def _failed(core: CoreState, resolution: DivergenceResolution, request: PeerRequest) -> bool:
    retry_later(core, request)
    return _is_given_up(core, resolution, request)


def _is_given_up(core: CoreState, resolution: DivergenceResolution, request: PeerRequest) -> bool:
    """Drop a search whose peer has failed too often; return whether it was dropped."""
    if resolution.stage is not Stage.SEARCHING or request.failures < FAILURES_MAX:
        return False
        # The peer may be gone for good; if not, its next message shows the difference again.
    _drop(core, resolution, DivergenceOutcome.SILENT)
    return True
