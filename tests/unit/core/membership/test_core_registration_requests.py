"""A replica's request about its own voter entry: what the leader does, and what its answer says."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorum.core.contract.events import (
    MessageIgnored,
    RequestRefused,
    SelfRegistrationAnswered,
    VoterChangeEnded,
)
from quorum.core.membership.self_registration import on_voter_change_response, on_voter_request
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.pending_change import ChangeKind, PeerAsker
from quorum.core.state.roles import Leader
from quorum.errors import ErrorCode
from quorum.types import NO_NODE, Endpoint, ReplicaKey, Voter
from tests.support.bare_core import (
    CLUSTER,
    EPOCH,
    LEADER,
    LOG_END,
    core_of,
    follower,
    leading,
    reported,
    sent,
)
from tests.support.core_disk import key, voter

SENDER = 9
ELSEWHERE = ReplicaKey(3, bytes(15) + b"x")
MOVED = Voter(key(3), (Endpoint("CONTROLLER", "moved", 1),), 0, 1)
NEW = Voter(key(4), voter(4).endpoints, 0, 1)
INVALID = ErrorCode.INVALID_REQUEST


def update(**fields: Any) -> UpdateVoterRequest:
    given = {"cluster_id": CLUSTER, "voter": MOVED, "epoch": EPOCH, **fields}
    return UpdateVoterRequest(70, **given)


def add() -> AddVoterRequest:
    return AddVoterRequest(70, CLUSTER, NEW, EPOCH)


def remove(replica: ReplicaKey, entry: ReplicaKey, **fields: Any) -> RemoveVoterRequest:
    given = {"cluster_id": CLUSTER, "epoch": EPOCH, **fields}
    return RemoveVoterRequest(70, replica=replica, voter=entry, **given)


def built() -> tuple[CoreState, Leader]:
    """Node 1 leads; its whole log is committed."""
    return leading(high_watermark=LOG_END)


def refused(core: CoreState) -> list[tuple[str, ErrorCode]]:
    return [(each.request, each.error) for each in reported(core, RequestRefused)]


@pytest.mark.parametrize(
    ("request_", "kind", "entry", "waits"),
    [
        (update(), ChangeKind.UPDATE, MOVED, False),
        (add(), ChangeKind.ADD, NEW, False),
        (remove(ELSEWHERE, key(3)), ChangeKind.REMOVE, Voter(key(3)), True),
    ],
)
def test_each_request_is_a_change_that_its_sender_is_answered_for(
    request_: Any, kind: ChangeKind, entry: Voter, waits: bool
) -> None:
    """A removal is answered when it is committed, since the replica then asks to be added."""
    core, role = built()
    on_voter_request(core, SENDER, request_, is_proven=True)
    change = role.change
    assert change is not None
    assert (change.kind, change.voter, change.asker) == (kind, entry, PeerAsker(SENDER, 70))
    assert change.ack_when_committed is waits
    assert refused(core) == []


def test_there_is_no_other_request() -> None:
    core, _ = built()
    other: Any = SimpleNamespace(request_id=70, cluster_id=CLUSTER, epoch=EPOCH)
    with pytest.raises(AssertionError):
        on_voter_request(core, SENDER, other, is_proven=True)


@pytest.mark.parametrize("request_", [update(), add(), remove(ELSEWHERE, key(3))])
def test_a_sender_that_is_not_proven_is_told_what_an_operator_can_do(request_: Any) -> None:
    core, role = built()
    on_voter_request(core, SENDER, request_, is_proven=False)
    assert role.change is None
    assert refused(core) == [(type(request_).__name__, INVALID)]
    (response,) = sent(core, SENDER)
    assert isinstance(response, VoterChangeResponse)
    assert (response.request_id, response.error) == (70, INVALID)
    assert (response.leader_id, response.epoch) == (1, EPOCH)
    assert "quorate quorum update-voter" in response.message
    assert response.leader_endpoints == voter(1).endpoints


@pytest.mark.parametrize("is_proven", [True, False])
@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (update(cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (update(cluster_id="other", epoch=EPOCH + 1), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (update(epoch=EPOCH - 1), ErrorCode.FENCED_LEADER_EPOCH),
        (update(epoch=EPOCH + 1), ErrorCode.UNKNOWN_LEADER_EPOCH),
        (remove(key(3), key(2)), INVALID),
        (remove(key(3), key(3)), INVALID),
        (remove(ReplicaKey(3), key(3)), INVALID),
        (remove(key(3), key(3), epoch=EPOCH - 1), ErrorCode.FENCED_LEADER_EPOCH),
    ],
)
def test_a_wrong_request_changes_nothing(request_: Any, error: ErrorCode, is_proven: bool) -> None:
    """A peer may ask for its own node id only, and for the removal of another disk only."""
    core, role = built()
    on_voter_request(core, SENDER, request_, is_proven=is_proven)
    assert role.change is None
    assert refused(core) == [(type(request_).__name__, error)]
    assert not reported(core, VoterChangeEnded)


@pytest.mark.parametrize("leads", [False, True])
def test_only_an_established_leader_takes_a_request(leads: bool) -> None:
    core = core_of(follower())
    if leads:
        core, role = built()
        role.established = False
    on_voter_request(core, SENDER, update(), is_proven=True)
    assert refused(core) == [("UpdateVoterRequest", ErrorCode.NOT_LEADER_OR_FOLLOWER)]
    assert not reported(core, VoterChangeEnded)


# The answer.


@pytest.mark.parametrize(
    ("fields", "purpose", "is_reported"),
    [
        ({}, Purpose.SELF_REGISTRATION, True),
        ({"leader_id": NO_NODE}, Purpose.SELF_REGISTRATION, True),
        ({"epoch": EPOCH - 1}, Purpose.SELF_REGISTRATION, False),
        ({"epoch": EPOCH + 1}, Purpose.SELF_REGISTRATION, False),
        ({}, Purpose.PROBE, False),
        ({"epoch": EPOCH + 1}, Purpose.PROBE, False),
    ],
)
def test_an_answer_of_this_epoch_is_reported(
    fields: dict[str, Any], purpose: Purpose, is_reported: bool
) -> None:
    core = core_of(follower())
    asked = PeerRequest(LEADER, purpose)
    core.requests.open(asked, 5)
    given = {"error": INVALID, "leader_id": LEADER, "epoch": EPOCH, "message": "why", **fields}
    on_voter_change_response(core, LEADER, VoterChangeResponse(5, **given))
    expected = [SelfRegistrationAnswered(INVALID, "why")] if is_reported else []
    assert reported(core, SelfRegistrationAnswered) == expected
    was_asked = purpose is Purpose.SELF_REGISTRATION
    assert core.requests.get(5) is (None if was_asked else asked)
    assert bool(reported(core, MessageIgnored)) == (not was_asked or core.epoch > given["epoch"])
    assert (core.epoch > EPOCH) == (was_asked and given["epoch"] > EPOCH)
