"""Bootstrap a quorum: the agreement among the bootstrap voters before the election of epoch 1.

A disk that is wiped and formatted by the same command gets the same id and directory id as its
predecessor, but has none of the promises it made. So every disk draws an *incarnation id* once.
A bootstrap voter votes only after it has durably agreed to a *voter list*: the incarnation ids of
all bootstrap voters. A disk agrees to at most one voter list. A voter campaigns for epoch 1 only
when every bootstrap voter has agreed to the same list. A second disk of a voter therefore cannot
take part while one disk of that list is left. It meets an epoch above 0, or a list that names its
predecessor. Then it is *disqualified*: it never votes with that directory id and reports so.

Voters named in ``bootstrap_without`` are not waited for; the operator has accepted that risk.

See: docs/adr/0028-bootstrap-voters-agree-first.md, docs/reference/voters.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from quorum.core.contract.events import BootstrapVotersAgreed, QuorumBootstrapped
from quorum.core.contract.reasons import DisqualifiedReason, Rejection, VoteRejection
from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.protocol.refusals import (
    has_wrong_cluster,
    is_addressed_to,
    refusal_of_voter_request,
    refuse,
)
from quorum.core.protocol.requests import answered, is_to_be_sent, next_attempt, retry_later
from quorum.core.protocol.responses import learn_from_response
from quorum.core.state.bootstrap_peer import BootstrapPeer, VoterList, without
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import Purpose
from quorum.errors import ErrorCode
from quorum.types import ZERO_UUID, BootstrapState, NodeId, Uuid


def why_not_bootstrapped(core: CoreState) -> str:
    """Return why this node cannot be elected to epoch 1; empty once its quorum is bootstrapped."""
    if not core.is_bootstrapping:
        return ""
    others = [
        voter.key.id
        for voter in core.voters.latest.others(core.me)
        if voter.key.id not in core.bootstrap.without
    ]
    bootstrap_state = core.election.bootstrap_state
    if bootstrap_state is None or not bootstrap_state.voter_list:
        silent = [voter_id for voter_id in others if not _has_reported(core, voter_id)]
        return f"bootstrap voters {silent} have not reported that they are freshly formatted"
    waiting = [voter_id for voter_id in others if not _has_agreed(core, voter_id)]
    return f"bootstrap voters {waiting} have not agreed to the voter list"


def why_not_vote(core: CoreState) -> Rejection | None:
    """Return why this disk may not grant a vote; None when it may."""
    if core.election.disqualified:
        return VoteRejection.DISQUALIFIED, core.election.disqualified
    if core.is_voter and core.epoch == 0 and not core.has_agreed_to_bootstrap:
        return VoteRejection.BOOTSTRAP_NOT_AGREED, ""
    return None


def _has_reported(core: CoreState, voter_id: NodeId) -> bool:
    peer = core.bootstrap.peers.get(voter_id)
    return peer is not None and peer.incarnation_id != ZERO_UUID


def _has_agreed(core: CoreState, voter_id: NodeId) -> bool:
    bootstrap_state, peer = core.election.bootstrap_state, core.bootstrap.peers.get(voter_id)
    if bootstrap_state is None or peer is None or not peer.voter_list:
        return False
    missing = core.bootstrap.without
    return without(peer.voter_list, missing) == without(bootstrap_state.voter_list, missing)


# Asking.


def poll_bootstrap(core: CoreState) -> None:
    """Ask every bootstrap voter that has not agreed yet; agree or complete the bootstrap if due."""
    if not core.is_bootstrapping:
        _forget_peers(core)
        return
    bootstrap_state = core.election.bootstrap_state
    if bootstrap_state is None:
        bootstrap_state = BootstrapState(_draw_incarnation_id(core))
        core.save_bootstrap(bootstrap_state)
    for voter in core.voters.latest.others(core.me):
        # No record has been committed, so the voters stay those that the disk names.
        if voter.key.id not in core.bootstrap.peers:
            peer = BootstrapPeer(voter.key.id, core.now_ms, voter=voter.key)
            core.bootstrap.peers[voter.key.id] = peer
    _conclude(core, bootstrap_state)
    if core.is_bootstrapping:
        for peer in _waited_for(core):
            if is_to_be_sent(core, peer):
                _ask(core, peer)


def _forget_peers(core: CoreState) -> None:
    core.requests.close_all(Purpose.BOOTSTRAP)
    core.bootstrap.peers.clear()


def bootstrap_deadlines(core: CoreState) -> Iterator[int]:
    """Yield when each next request or its time-out is due."""
    if core.is_bootstrapping:
        for peer in _waited_for(core):
            yield peer.due_ms


def _waited_for(core: CoreState) -> Iterator[BootstrapPeer]:
    for voter_id, peer in core.bootstrap.peers.items():
        if not _has_agreed(core, voter_id):
            yield peer


def _draw_incarnation_id(core: CoreState) -> Uuid:
    drawn = core.rng.getrandbits(128)
    return max(drawn, 1).to_bytes(16, "big")


def _ask(core: CoreState, peer: BootstrapPeer) -> None:
    bootstrap_state = core.election.bootstrap_state
    # It names our incarnation id and voter list, so ``send`` waits for them to be durable.
    core.send(
        peer.peer,
        BootstrapRequest(
            next_attempt(core, peer),
            core.cluster_id,
            core.me,
            peer.voter,
            core.epoch,
            bootstrap_state.incarnation_id if bootstrap_state is not None else ZERO_UUID,
            bootstrap_state.voter_list if bootstrap_state is not None else (),
        ),
    )


def _ask_soon(core: CoreState, voter_id: NodeId) -> None:
    """Ask a voter, unless it has agreed, without waiting for its back-off."""
    peer = core.bootstrap.peers.get(voter_id)
    if peer is not None and not peer.request_id:
        peer.due_ms = core.now_ms


def on_bootstrap_response(core: CoreState, sender: NodeId, response: BootstrapResponse) -> None:
    """Record what a bootstrap voter reports of itself, or that a quorum exists already."""
    peer = answered(core, sender, response, Purpose.BOOTSTRAP)
    if not isinstance(peer, BootstrapPeer):
        return
    if not learn_from_response(core, sender, response):
        return
    if response.error == ErrorCode.NONE and response.incarnation_id != ZERO_UUID:
        peer.incarnation_id, peer.voter_list = response.incarnation_id, response.voter_list
        _consider(core, sender, response.voter_list)
    retry_later(core, peer)


def _conclude(core: CoreState, bootstrap_state: BootstrapState) -> None:
    """Agree to a voter list when every incarnation id is known; complete the bootstrap when all
    required voters have agreed.
    """
    required = core.bootstrap.required
    if not bootstrap_state.voter_list:
        if any(core.bootstrap.peers[key].incarnation_id == ZERO_UUID for key in required):
            return
        known = {key: each.incarnation_id for key, each in core.bootstrap.peers.items()}
        known[core.me.id] = bootstrap_state.incarnation_id
        voter_list = tuple((key, known[key]) for key in sorted(known) if known[key] != ZERO_UUID)
        _agree(core, bootstrap_state, voter_list)
    elif all(_has_agreed(core, key) for key in required):
        core.save_bootstrap(replace(bootstrap_state, is_complete=True))
        core.event(QuorumBootstrapped(tuple(key for key, _ in bootstrap_state.voter_list)))
        _forget_peers(core)


def _agree(core: CoreState, bootstrap_state: BootstrapState, voter_list: VoterList) -> None:
    core.save_bootstrap(replace(bootstrap_state, voter_list=voter_list))
    core.event(BootstrapVotersAgreed(tuple(key for key, _ in voter_list)))
    for peer in core.bootstrap.peers.values():
        # The others may be waiting for exactly this agreement.
        if not peer.request_id:
            peer.due_ms, peer.failures = core.now_ms, 0


def _consider(core: CoreState, peer: NodeId, voter_list: VoterList) -> None:
    """Agree to the voter list of ``peer``, or be disqualified if it names another disk."""
    bootstrap_state = core.election.bootstrap_state
    if bootstrap_state is None or not voter_list:
        return
    incarnation_ids = dict(voter_list)
    incarnation_id = incarnation_ids.get(core.me.id)
    if incarnation_id != bootstrap_state.incarnation_id:
        reason, which = (
            (DisqualifiedReason.NOT_IN_VOTER_LIST, "without it")
            if incarnation_id is None
            else (DisqualifiedReason.EARLIER_FORMAT, "with an earlier format of this directory")
        )
        core.disqualify(
            reason,
            f"freshly formatted, and voter {peer} has agreed to bootstrap the quorum {which}",
        )
    elif not bootstrap_state.voter_list and incarnation_ids.keys() <= set(core.voters.latest.ids):
        needed = set(core.voters.latest.ids) - core.bootstrap.without
        if needed <= incarnation_ids.keys():
            _agree(core, bootstrap_state, voter_list)


# Answering.


def on_bootstrap_request(core: CoreState, sender: NodeId, request: BootstrapRequest) -> None:
    """Report to a bootstrap voter whether this disk is freshly formatted too.

    The incarnation id and the voter list in the answer are durable before it leaves. The request
    itself proves nothing: agreement and disqualification are permanent, and anyone can name a voter
    as the sender. If the request carries a voter list, this node asks that voter at its recorded
    endpoint (ADR 52).
    """
    error = _refusal_of(core, request)
    if error is None and request.voter_list:
        _ask_soon(core, request.sender.id)
    bootstrap_state = core.election.bootstrap_state
    if error is not None or bootstrap_state is None:
        refuse(core, sender, request, error or ErrorCode.INELIGIBLE_REPLICA)
        return
    core.send(
        sender,
        BootstrapResponse(
            request.request_id,
            ErrorCode.NONE,
            core.leader_id,
            core.epoch,
            bootstrap_state.incarnation_id,
            bootstrap_state.voter_list,
        ),
    )


def _refusal_of(core: CoreState, request: BootstrapRequest) -> ErrorCode | None:
    if has_wrong_cluster(core, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    ids = [key for key, _ in request.voter_list]
    if request.epoch != 0 or request.incarnation_id == ZERO_UUID or ids != sorted(set(ids)):
        return ErrorCode.INVALID_REQUEST
    error = refusal_of_voter_request(core, request.epoch, request.sender.id)
    if error is not None:
        return error
    if not is_addressed_to(core, request.voter) or not core.voters.latest.contains(request.sender):
        return ErrorCode.INVALID_VOTER_KEY
    if not core.is_voter:
        return ErrorCode.INELIGIBLE_REPLICA
    return None
