"""Founding a quorum: what bootstrap voters settle before anybody may be elected to epoch 1.

A disk that is wiped and formatted by the very same command has the same id and directory id as
the one before it, and remembers none of its promises. So every disk draws a *life id* once, and
no bootstrap voter votes before it has durably agreed to a *roster*: the life ids of all of
them. A disk agrees to one roster, ever. A voter stands for epoch 1 only when every bootstrap
voter has agreed to the same one. Hence a second disk of a voter cannot take part as long as one
disk of that roster is left: it meets either an epoch above 0 or a roster that names its
predecessor, and is *barred*: it never votes with that directory id and says so.

Voters named in ``found_without`` are not waited for; the operator has taken that risk.

See: docs/adr/0028-founding.md, docs/protocol.md.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from quorum.core.contract.events import QuorumFounded, RosterAgreed
from quorum.core.messages.bootstrap_messages import FoundingRequest, FoundingResponse
from quorum.core.protocol.refusals import (
    has_wrong_cluster,
    ignore,
    is_addressed_to,
    refusal_of_voter_request,
    refuse,
)
from quorum.core.protocol.responses import learn_from_response
from quorum.core.state.bootstrap_inquiry import Inquiry, Roster, without
from quorum.core.state.core_state import CoreState
from quorum.core.state.peers import backoff_ms
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import ZERO_UUID, Founding, NodeId, Uuid


def why_not_founded(core: CoreState) -> str:
    """Why nobody may be elected to epoch 1 by this node; empty once its quorum is founded."""
    if not core.is_founding:
        return ""
    waiting = [
        voter.key.id
        for voter in core.voters.latest.others(core.me)
        if voter.key.id not in core.found_without and not _has_agreed(core, voter.key.id)
    ]
    return f"bootstrap voters {waiting} have not all said that they are freshly formatted"


def why_not_vote(core: CoreState) -> str:
    """Why this disk may not promise anybody its vote; empty when it may."""
    if core.election.barred:
        return f"barred: {core.election.barred}"
    if core.is_voter and core.epoch == 0 and not core.has_agreed_to_found:
        return "freshly formatted, and has not agreed with the other bootstrap voters"
    return ""


def _has_agreed(core: CoreState, voter_id: NodeId) -> bool:
    founding, inquiry = core.election.founding, core.inquiries.get(voter_id)
    if founding is None or inquiry is None or not inquiry.roster:
        return False
    missing = core.found_without
    return without(inquiry.roster, missing) == without(founding.roster, missing)


# Asking.


def pursue_founding(core: CoreState) -> None:
    """Ask every bootstrap voter that has not agreed yet; conclude what follows."""
    if not core.is_founding:
        core.inquiries.clear()
        return
    founding = core.election.founding
    if founding is None:
        founding = Founding(_draw_life_id(core))
        core.save_founding(founding)
    for voter in core.voters.latest.others(core.me):
        inquiry = core.inquiries.get(voter.key.id)
        if inquiry is None or inquiry.voter != voter.key:
            core.inquiries[voter.key.id] = Inquiry(voter.key, core.now_ms)
    _conclude(core, founding)
    if core.is_founding:
        for inquiry in _open(core):
            if core.now_ms >= inquiry.due_ms:
                _ask(core, inquiry)


def founding_deadlines(core: CoreState) -> Iterator[int]:
    """When the next question or its time-out is due."""
    if core.is_founding:
        for inquiry in _open(core):
            yield inquiry.due_ms


def _open(core: CoreState) -> Iterator[Inquiry]:
    for voter_id, inquiry in core.inquiries.items():
        if not _has_agreed(core, voter_id):
            yield inquiry


def _draw_life_id(core: CoreState) -> Uuid:
    drawn = core.rng.getrandbits(128)
    return max(drawn, 1).to_bytes(16, "big")


def _ask(core: CoreState, inquiry: Inquiry) -> None:
    if inquiry.request_id:
        core.fired(Timer.FOUNDING_REQUEST)
        inquiry.request_id = 0
        _pause(core, inquiry)
        return
    if inquiry.failures:
        core.fired(Timer.FOUNDING_RETRY)
    founding = core.election.founding
    inquiry.request_id = core.next_request_id()
    inquiry.due_ms = core.now_ms + core.config.request_timeout_ms
    # It tells our own life and roster, so it waits for them to be durable, as every message.
    core.send(
        inquiry.voter.id,
        FoundingRequest(
            inquiry.request_id,
            core.cluster_id,
            core.me,
            inquiry.voter,
            core.epoch,
            founding.life_id if founding is not None else ZERO_UUID,
            founding.roster if founding is not None else (),
        ),
    )


def _ask_soon(core: CoreState, voter_id: NodeId) -> None:
    """Ask a voter that has not agreed, as far as known, without waiting for a pause to end."""
    inquiry = core.inquiries.get(voter_id)
    if inquiry is not None and not inquiry.request_id and not _has_agreed(core, voter_id):
        inquiry.due_ms = core.now_ms


def _pause(core: CoreState, inquiry: Inquiry) -> None:
    inquiry.failures += 1
    inquiry.due_ms = core.now_ms + backoff_ms(core.config, inquiry.failures)


def on_founding_response(core: CoreState, sender: NodeId, response: FoundingResponse) -> None:
    """Note what a bootstrap voter says of itself, or that there is a quorum already."""
    inquiry = core.inquiries.get(sender)
    if inquiry is None or inquiry.request_id != response.request_id or not response.request_id:
        ignore(core, sender, response, "never asked for, or no longer")
        return
    inquiry.request_id = 0
    if not learn_from_response(core, sender, response) or not core.is_founding:
        return
    if response.error == ErrorCode.NONE and response.life_id != ZERO_UUID:
        inquiry.life_id, inquiry.roster = response.life_id, response.roster
        _consider(core, sender, response.roster)
    _pause(core, inquiry)


def on_founding_failed(core: CoreState, peer: NodeId, request_id: int) -> None:
    """A question to ``peer`` will not be answered: ask again after a pause."""
    inquiry = core.inquiries.get(peer)
    if inquiry is not None and inquiry.request_id == request_id:
        inquiry.request_id = 0
        _pause(core, inquiry)


def _conclude(core: CoreState, founding: Founding) -> None:
    """Agree to a roster when every life is known; found the quorum when all have agreed."""
    required = [key for key in core.inquiries if key not in core.found_without]
    if not founding.roster:
        if any(core.inquiries[key].life_id == ZERO_UUID for key in required):
            return
        known = {key: each.life_id for key, each in core.inquiries.items()}
        known[core.me.id] = founding.life_id
        roster = tuple((key, known[key]) for key in sorted(known) if known[key] != ZERO_UUID)
        _agree(core, founding, roster)
    elif all(_has_agreed(core, key) for key in required):
        core.save_founding(replace(founding, is_complete=True))
        core.event(QuorumFounded(tuple(key for key, _ in founding.roster)))
        core.inquiries.clear()


def _agree(core: CoreState, founding: Founding, roster: Roster) -> None:
    core.save_founding(replace(founding, roster=roster))
    core.event(RosterAgreed(tuple(key for key, _ in roster)))
    for inquiry in core.inquiries.values():
        # The others may be waiting for exactly this.
        if not inquiry.request_id:
            inquiry.due_ms, inquiry.failures = core.now_ms, 0


def _consider(core: CoreState, peer: NodeId, roster: Roster) -> None:
    """Agree to the roster that ``peer`` has agreed to, or find that it is another disk's."""
    founding = core.election.founding
    if founding is None or not roster:
        return
    lives = dict(roster)
    life_id = lives.get(core.me.id)
    if life_id != founding.life_id:
        which = "without it" if life_id is None else "with an earlier format of this directory"
        core.bar(f"freshly formatted, and voter {peer} has agreed to found the quorum {which}")
    elif not founding.roster and lives.keys() <= set(core.voters.latest.ids):
        needed = set(core.voters.latest.ids) - core.found_without
        if needed <= lives.keys():
            _agree(core, founding, roster)


# Answering.


def on_founding_request(core: CoreState, sender: NodeId, request: FoundingRequest) -> None:
    """Tell a bootstrap voter that this disk is freshly formatted too, or that it is not.

    Both the life id and the roster in the answer are durable before it leaves. Nothing is concluded
    from the request: to agree and to be barred are for ever, and anybody can name a voter as the
    sender. A roster in it is a reason to ask that voter, where its record says it is (ADR 52).
    """
    error = _refusal_of(core, request)
    if error is None and core.is_founding and request.roster:
        _ask_soon(core, request.sender.id)
    founding = core.election.founding
    if error is not None or founding is None:
        refuse(core, sender, request, error or ErrorCode.INELIGIBLE_REPLICA)
        return
    core.send(
        sender,
        FoundingResponse(
            request.request_id,
            ErrorCode.NONE,
            core.leader_id,
            core.epoch,
            founding.life_id,
            founding.roster,
        ),
    )


def _refusal_of(core: CoreState, request: FoundingRequest) -> ErrorCode | None:
    if has_wrong_cluster(core, request.cluster_id):
        return ErrorCode.INCONSISTENT_CLUSTER_ID
    ids = [key for key, _ in request.roster]
    if request.epoch != 0 or request.life_id == ZERO_UUID or ids != sorted(set(ids)):
        return ErrorCode.INVALID_REQUEST
    error = refusal_of_voter_request(core, request.epoch, request.sender.id)
    if error is not None:
        return error
    if not is_addressed_to(core, request.voter) or not core.voters.latest.contains(request.sender):
        return ErrorCode.INVALID_VOTER_KEY
    if core.election.barred or not core.is_voter:
        return ErrorCode.INELIGIBLE_REPLICA
    return None
