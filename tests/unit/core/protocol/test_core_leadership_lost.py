"""What a leader that leads no longer owes, fails and reports, case by case."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.contract.events import TransferEnded, VoterChangeEnded
from quorum.core.contract.outcomes import TransferOutcome
from quorum.core.contract.output import (
    LeadershipChanged,
    ReadFailed,
    RequestSettled,
)
from quorum.core.contract.reasons import RoleChangeCause, RoleChangeReason
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.read_messages import ReadPositionResponse
from quorum.core.protocol.role_transitions import (
    NO_TOKEN,
    become_follower,
    become_resigned,
    end_transfer,
)
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS, HeldFetch
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.pending_change import ChangeKind, LocalAsker, PendingChange
from quorum.core.state.read_rounds import Asker, PendingRead
from quorum.core.state.roles import (
    Resigned,
    Transfer,
)
from quorum.errors import ErrorCode
from quorum.types import (
    NO_NODE,
    Voter,
)
from tests.support.bare_core import (
    CLUSTER,
    EPOCH,
    NOW_MS,
    leading,
    progress,
    reported,
)
from tests.support.core_disk import key, voter

CAUSE = RoleChangeCause(RoleChangeReason.RESPONSE, 3)
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def new_timer(core: CoreState, deadline_ms: int) -> bool:
    base_ms = core.config.election_timeout_ms
    return NOW_MS + base_ms <= deadline_ms < NOW_MS + 2 * base_ms


@pytest.mark.parametrize(("voters", "is_alone"), [((1, 2, 3), False), ((1,), True)])
def test_a_resigned_leader_owes_every_other_voter_an_end(
    voters: tuple[int, ...], is_alone: bool
) -> None:
    core, _ = leading(voters)
    become_resigned(core, (key(3), key(2)), cause=CAUSE)
    role = core.role
    assert isinstance(role, Resigned)
    assert role.preferred_successors == (key(3), key(2))
    requests = [(each.peer, each.purpose, each.due_ms) for each in role.end_epochs.values()]
    assert requests == [(each, Purpose.END_EPOCH, NOW_MS) for each in voters[1:]]
    deadline_ms = role.election_deadline_ms
    assert deadline_ms == NOW_MS if is_alone else new_timer(core, deadline_ms)
    assert (core.epoch, core.election.leader_id) == (EPOCH, 1)
    assert [each.leader_id for each in progress(core, LeadershipChanged)] == [NO_NODE]


def transfer(token: int = 7) -> Transfer:
    return Transfer(key(2), token, NEVER_MS, PeerRequest(2, Purpose.TRANSFER))


@pytest.mark.parametrize("resigns", [False, True])
def test_what_waits_for_a_leader_fails_when_it_leads_no_longer(resigns: bool) -> None:
    core, role = leading()
    fetch = FetchRequest(21, CLUSTER, key(2), EPOCH, 40, EPOCH)
    role.held.hold(HeldFetch(2, fetch, NEVER_MS, is_voter=True))
    role.reads.add(PendingRead(31, 0), NOW_MS)
    role.reads.add(PendingRead(0, 0, Asker(3, 32)), NOW_MS)
    role.reads.add(PendingRead(33, 0), NOW_MS)
    role.change = PendingChange(ChangeKind.REMOVE, Voter(key(3)), LocalAsker(34))
    role.transfer = transfer(35)
    if resigns:
        become_resigned(core, (), cause=CAUSE)
    else:
        become_follower(core, 3, EPOCH + 1, (), cause=CAUSE)
    answers = [each.message for each in (*core.out.immediate, *core.out.after_persist)]
    (of_fetch,) = [each for each in answers if isinstance(each, FetchResponse)]
    assert (of_fetch.request_id, of_fetch.error) == (21, NOT_LEADER)
    (of_read,) = [each for each in answers if isinstance(each, ReadPositionResponse)]
    # Where another leader is reached may not be known yet.
    known = voter(1).endpoints if resigns else ()
    assert of_read == ReadPositionResponse(
        32, NOT_LEADER, core.leader_id, core.epoch, leader_endpoints=known
    )
    assert progress(core, ReadFailed) == [ReadFailed(31), ReadFailed(33)]
    assert [each.error for each in reported(core, VoterChangeEnded)] == [NOT_LEADER]
    outcome = TransferOutcome.RESIGNED if resigns else TransferOutcome.SUPERSEDED
    assert [each.outcome for each in reported(core, TransferEnded)] == [outcome]
    settled = [(each.token, each.error) for each in progress(core, RequestSettled)]
    assert settled == [(34, NOT_LEADER), (35, NOT_LEADER if resigns else ErrorCode.NONE)]
    assert (role.change, role.transfer, len(role.held), len(role.reads)) == (None, None, 0, 0)


@pytest.mark.parametrize(
    ("token", "detail", "message"),
    [
        (7, "", "transfer to 2: it cannot be reached"),
        (7, "at all", "transfer to 2: it cannot be reached at all"),
        (NO_TOKEN, "", None),
    ],
)
def test_the_end_of_a_transfer_is_reported_once(
    token: int, detail: str, message: str | None
) -> None:
    core, role = leading()
    role.transfer = transfer(token)
    core.requests.open(role.transfer.request, 5)
    for _ in range(2):
        end_transfer(
            core, role, ErrorCode.BROKER_NOT_AVAILABLE, TransferOutcome.UNREACHABLE, detail
        )
    assert role.transfer is None
    assert list(core.requests) == []
    ended = TransferEnded(key(2), EPOCH, TransferOutcome.UNREACHABLE, detail)
    assert reported(core, TransferEnded) == [ended]
    settled: list[Any] = progress(core, RequestSettled)
    error = ErrorCode.BROKER_NOT_AVAILABLE
    assert settled == ([] if message is None else [RequestSettled(token, error, message)])
