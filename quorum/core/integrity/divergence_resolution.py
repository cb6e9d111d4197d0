"""Settling which of two logs is wrong, when their digests differ.

Both sides do the same, each for itself, and each condemns nobody but itself:

1. Read the own files again. Damage there settles it: this replica is wrong.
2. Find the first batch that differs, asking the other side for digests by halves.
3. Ask the other voters for theirs. If a majority holds what this replica holds, it is right
   and goes on; a follower then has no use for such a leader and stands. If a majority holds
   something else, this replica is wrong. If all have answered and no majority holds anything,
   nobody can tell: it stops and reports. Whose log does not reach there yet is asked again.

Who is wrong stores a vote floor, gives up leadership and stops; the next start sets aside what
is wrong and fetches it anew. Nobody truncates at another's word.

See: ADR 5 and 7.
"""

from __future__ import annotations

from quorum.core.contract.events import DisputeOpened, DisputeSettled
from quorum.core.contract.local_events import LogVerified
from quorum.core.contract.output import VerifyLog
from quorum.core.integrity.quarantine import condemn
from quorum.core.messages.chain_messages import (
    CHAIN_OFFSETS_MAX,
    ChainDigestRequest,
    ChainDigestResponse,
)
from quorum.core.protocol.refusals import ignore
from quorum.core.protocol.responses import learn_from_response
from quorum.core.protocol.role_transitions import lose_leader
from quorum.core.state.chain_state import Dispute, Question, Stage
from quorum.core.state.core_state import CoreState
from quorum.core.state.digest_tally import Difference, Held
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peers import backoff_ms
from quorum.core.state.roles import Follower
from quorum.core.state.timers import Timer
from quorum.core.voters import majority
from quorum.errors import ErrorCode
from quorum.types import NodeId

FAILURES_MAX = 3
"""Questions to the other side without an answer, after which the search is given up."""
QUIET_MS = 60_000
"""After a dispute that changed nothing here, the next one waits this long."""


def open_dispute(
    core: CoreState, opponent: NodeId, end_offset: int, reason: str, *, opponent_votes: bool
) -> None:
    """Begin to settle why ``opponent`` holds another history below ``end_offset``.

    One at a time; while one is under way, or shortly after one, nothing happens.
    """
    chain = core.chain
    if chain.dispute is not None or chain.condemned or core.now_ms < chain.quiet_until_ms:
        return
    chain.dispute = Dispute(
        opponent,
        opponent_votes,
        end_offset,
        core.log.cuts,
        low=core.log.start.offset - 1,
        high=end_offset,
    )
    core.event(DisputeOpened(opponent, end_offset, reason))
    core.progress(VerifyLog(core.log.flushed_end, core.log.cuts))


def on_log_verified(core: CoreState, fact: LogVerified) -> None:
    """The own files were read again."""
    dispute = core.chain.dispute
    if fact.cuts != core.log.cuts:
        # Records were taken back meanwhile, so the reader may have seen half of that.
        if dispute is not None:
            _drop(core, dispute, "the log was cut meanwhile")
    elif fact.damaged_offset >= 0:
        if dispute is not None:
            _settle(core, dispute, "its own files are damaged", fact.damaged_offset)
        condemn(core, fact.damaged_offset, fact.cause, is_history=False)
    elif dispute is None or dispute.stage is not Stage.VERIFYING:
        return
    elif not dispute.opponent_votes and core.leader_id != dispute.opponent:
        # An observer is wrong, or we are and its voters will say so; it cannot be asked.
        _settle(core, dispute, "its own files are sound")
    else:
        dispute.stage = Stage.SEARCHING
        dispute.questions = {dispute.opponent: Question(core.now_ms)}
        core.chain.due_ms = core.now_ms


def pursue_dispute(core: CoreState) -> None:
    """Ask what is due, and ask again what was not answered."""
    dispute = core.chain.dispute
    core.chain.due_ms = NEVER_MS
    if dispute is None or core.chain.condemned:
        return
    if dispute.cuts != core.log.cuts:
        _drop(core, dispute, "the log was cut meanwhile")
        return
    for peer, question in dispute.questions.items():
        if core.chain.dispute is not dispute:
            return
        if question.held is not None:
            continue
        if core.now_ms >= question.due_ms:
            if question.request_id:
                core.fired(Timer.DIGEST_REQUEST)
                _failed(core, question)
            else:
                if question.failures:
                    core.fired(Timer.DIGEST_RETRY)
                _ask(core, dispute, peer, question)
        if core.chain.dispute is dispute:
            core.chain.due_ms = min(core.chain.due_ms, question.due_ms)


def _ask(core: CoreState, dispute: Dispute, peer: NodeId, question: Question) -> None:
    question.offsets = _offsets_to_ask(dispute)
    question.request_id = core.next_request_id()
    question.due_ms = core.now_ms + core.config.request_timeout_ms
    core.send(
        peer,
        ChainDigestRequest(
            question.request_id, core.cluster_id, core.me, core.epoch, question.offsets
        ),
    )


def _offsets_to_ask(dispute: Dispute) -> tuple[int, ...]:
    """Where to compare next: evenly between the two ends of what is still open."""
    if dispute.stage is Stage.POLLING:
        return dispute.high, dispute.end_offset
    low, high = dispute.low, dispute.high
    parts = CHAIN_OFFSETS_MAX - 1
    inside = {low + (high - low) * part // parts for part in range(1, parts)}
    found = {offset for offset in inside if low < offset < high}
    return tuple(sorted(found if dispute.is_high_known else found | {high}))


def on_chain_digest_response(
    core: CoreState, sender: NodeId, response: ChainDigestResponse
) -> None:
    """Compare what another replica holds with what this one does."""
    dispute = core.chain.dispute
    question = None if dispute is None else dispute.questions.get(sender)
    if (
        dispute is None
        or question is None
        or question.request_id != response.request_id
        or not response.request_id
    ):
        ignore(core, sender, response, "never asked for, or no longer")
        return
    learn_from_response(core, sender, response)
    question.request_id = 0
    if (
        response.error != ErrorCode.NONE
        or not _speaks_for(core, sender, response)
        or response.offsets != question.offsets
        or not len(response.points) == len(response.own) == len(response.offsets)
    ):
        _failed(core, question)
        return
    core.chain.due_ms = core.now_ms
    if dispute.stage is Stage.SEARCHING:
        _narrow(core, dispute, response)
        question.due_ms = core.now_ms
    elif dispute.stage is Stage.POLLING:
        held = Held(*response.points)
        if _difference(dispute).is_undecided(held):
            _failed(core, question)
        else:
            question.held = held
        _tally(core, dispute)


def _speaks_for(core: CoreState, sender: NodeId, response: ChainDigestResponse) -> bool:
    """Whether the answer is about the log of the very disk that was asked.

    Under a voter's number there may be another disk by now, whose log must not count as the
    voter's.
    """
    author = response.replica
    if author is None or author.id != sender:
        return False
    voter = core.voters.latest.get(sender)
    return voter is None or voter.key.matches(author)


def _narrow(core: CoreState, dispute: Dispute, response: ChainDigestResponse) -> None:
    if not dispute.is_high_known:
        # The first question of a search reaches up to the end of what is in dispute.
        dispute.own = dispute.own._replace(end=response.own[-1])
        dispute.theirs = dispute.theirs._replace(end=response.points[-1])
    for offset, own, theirs in zip(response.offsets, response.own, response.points, strict=True):
        if not dispute.low < offset <= dispute.high:
            continue
        if not own.value or not theirs.value:
            # One of the two logs begins above: what is below can no longer be told apart.
            if offset < dispute.high:
                dispute.low, dispute.is_low_equal = offset, False
        elif own == theirs:
            dispute.low, dispute.is_low_equal = offset, True
            dispute.first_offset = own.offset
            if offset == dispute.high and not dispute.is_high_known:
                _settle(core, dispute, "the histories are equal", -1)
                return
        else:
            dispute.high, dispute.is_high_known = offset, True
            dispute.own = dispute.own._replace(near=own)
            dispute.theirs = dispute.theirs._replace(near=theirs)
    if not dispute.is_high_known:
        _settle(core, dispute, "the digests are not known any more", -1)
    elif dispute.high - dispute.low <= 1:
        _poll(core, dispute)


def _poll(core: CoreState, dispute: Dispute) -> None:
    """The first difference is found: what do the others hold there?"""
    if not dispute.is_low_equal:
        # It lies at or below where the shorter of the two logs begins.
        dispute.first_offset = 0
    dispute.stage = Stage.POLLING
    others = core.voters.latest.others(core.me)
    dispute.questions = {
        voter.key.id: Question(core.now_ms) for voter in others if voter.key.id != dispute.opponent
    }
    _tally(core, dispute)


def _difference(dispute: Dispute) -> Difference:
    common_end = dispute.first_offset if dispute.is_low_equal else -1
    return Difference(dispute.own, dispute.theirs, common_end, dispute.end_offset)


def _tally(core: CoreState, dispute: Dispute) -> None:
    """Count which history the voters hold behind the first difference."""
    voters = [each.held for each in dispute.questions.values() if each.held is not None]
    is_open = len(voters) < len(dispute.questions)
    if core.is_voter:
        voters.append(dispute.own)
    if dispute.opponent_votes:
        voters.append(dispute.theirs)
    count = _difference(dispute).count(voters)
    needed = majority.quorum_size(len(core.voters.latest))
    first = dispute.first_offset
    if count.own >= needed:
        _prevail(core, dispute)
    elif max(count.theirs, count.others) >= needed:
        _settle(core, dispute, "a majority holds another history", first)
        if first == 0 and dispute.is_low_equal:
            # Not rot: a second founding. The disk's former self, if any, may have voted.
            core.bar("a majority's log has nothing in common with its own: it was formatted anew")
        condemn(core, first, _cause(dispute), is_history=True)
    elif not is_open:
        _settle(core, dispute, "no majority holds the same history", first)
        condemn(
            core,
            first,
            f"{_cause(dispute)}; no majority of voters holds the same history, so nobody can say "
            "which one is right",
            is_history=None,
        )


def _cause(dispute: Dispute) -> str:
    return (
        f"the log differs from that of node {dispute.opponent} "
        f"from offset {dispute.first_offset} on"
    )


def _prevail(core: CoreState, dispute: Dispute) -> None:
    _settle(core, dispute, "a majority holds what this replica holds", dispute.first_offset)
    role = core.role
    if isinstance(role, Follower) and role.leader_id == dispute.opponent:
        # It cannot commit anything with us, and whoever else is right thinks the same.
        lose_leader(core, core.rng.randint(0, core.config.lost_leader_jitter_ms))


def _settle(core: CoreState, dispute: Dispute, outcome: str, first_offset: int = -1) -> None:
    chain = core.chain
    chain.dispute = None
    chain.due_ms = NEVER_MS
    chain.quiet_until_ms = core.now_ms + QUIET_MS
    where = "" if first_offset < 0 else f", first different offset {first_offset}"
    chain.last_outcome = f"dispute with node {dispute.opponent}: {outcome}{where}"
    core.event(DisputeSettled(dispute.opponent, outcome, first_offset))


def _drop(core: CoreState, dispute: Dispute, outcome: str) -> None:
    """It led to nothing. A difference that is still there may begin another one at once."""
    _settle(core, dispute, outcome)
    core.chain.quiet_until_ms = core.now_ms


def on_question_failed(core: CoreState, peer: NodeId, request_id: int) -> None:
    """A question got no answer: ask again after a pause."""
    dispute = core.chain.dispute
    question = None if dispute is None else dispute.questions.get(peer)
    if question is not None and question.request_id == request_id:
        _failed(core, question)
        if core.chain.dispute is dispute:
            core.chain.due_ms = min(core.chain.due_ms, question.due_ms)


def _failed(core: CoreState, question: Question) -> None:
    question.request_id = 0
    question.failures += 1
    dispute = core.chain.dispute
    if (
        dispute is not None
        and dispute.stage is Stage.SEARCHING
        and question.failures >= FAILURES_MAX
    ):
        # It may be gone for good; if not, its next Fetch or answer shows the difference again.
        _drop(core, dispute, "the other side does not answer")
        return
    question.due_ms = core.now_ms + backoff_ms(core.config, question.failures)
