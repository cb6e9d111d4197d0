"""How a change of the voter set is answered: once, to its asker, and with what is known."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.contract.events import VoterChangeEnded
from quorum.core.contract.output import RequestSettled
from quorum.core.messages.voter_messages import VoterChangeResponse
from quorum.core.protocol.voter_change_answers import answer, end, fail_with_leadership
from quorum.core.state.pending_change import ChangeKind, LocalAsker, PeerAsker, PendingChange
from quorum.errors import ErrorCode
from quorum.types import Voter
from tests.support.bare_core import EPOCH, leading, progress, reported, sent, sent_of
from tests.support.core_disk import key, voter

FAILED = ErrorCode.REQUEST_TIMED_OUT
LOCAL = LocalAsker(7)
PEER = PeerAsker(3, 9)
UNKNOWN = (
    "why; the voters record is in the log at {}, so the outcome is unknown: "
    "look at the voter set before asking again"
)


def change(asker: LocalAsker | PeerAsker | None, offset: int = -1) -> PendingChange:
    return PendingChange(ChangeKind.REMOVE, Voter(key(3)), asker, offset=offset)


@pytest.mark.parametrize(
    ("error", "offset", "message"),
    [
        (ErrorCode.NONE, -1, "why"),
        (ErrorCode.NONE, 0, "why"),
        (FAILED, -1, "why"),
        (FAILED, 0, UNKNOWN.format(0)),
        (FAILED, 8, UNKNOWN.format(8)),
    ],
)
@pytest.mark.parametrize("asker", [LOCAL, PEER])
def test_an_asker_is_answered_once_and_told_whether_the_outcome_is_known(
    asker: LocalAsker | PeerAsker, error: ErrorCode, offset: int, message: str
) -> None:
    core, _ = leading()
    asked = change(asker, offset)
    for _ in range(2):
        answer(core, asked, error, "why")
    settled = progress(core, RequestSettled)
    responses: list[Any] = sent(core, PEER.sender)
    if asker is LOCAL:
        assert (settled, responses) == ([RequestSettled(7, error, message, offset)], [])
    else:
        response = VoterChangeResponse(9, error, 1, EPOCH, message, voter(1).endpoints)
        assert (settled, responses) == ([], [response])


def test_nobody_waits_for_a_change_that_the_leader_began_itself() -> None:
    core, _ = leading()
    answer(core, change(None), ErrorCode.NONE, "")
    assert not core.out.progress
    assert not sent_of(core, VoterChangeResponse)


@pytest.mark.parametrize("loses_leadership", [False, True])
def test_the_end_of_a_change_is_reported_and_ends_its_probe(loses_leadership: bool) -> None:
    core, role = leading()
    asked = role.change = change(LOCAL, 8)
    core.requests.open(asked.probe, 5)
    if loses_leadership:
        fail_with_leadership(core, role)
        error, why = ErrorCode.NOT_LEADER_OR_FOLLOWER, "this node leads no longer"
    else:
        end(core, asked, FAILED, "why")
        error, why = FAILED, "why"
    assert list(core.requests) == []
    assert (role.change is None) == loses_leadership
    assert reported(core, VoterChangeEnded) == [VoterChangeEnded("remove", key(3), error, 8, why)]
    assert [(each.error, each.offset) for each in progress(core, RequestSettled)] == [(error, 8)]


def test_without_a_change_nothing_fails_with_the_leadership() -> None:
    core, role = leading()
    fail_with_leadership(core, role)
    assert not core.out.events
