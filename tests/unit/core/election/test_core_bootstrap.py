"""Bootstrap a quorum, message by message; whole stories are in ``tests/scenario/testdata``."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from quorum.core.contract.events import (
    BootstrapVotersAgreed,
    MessageIgnored,
    QuorumBootstrapped,
    VoterDisqualified,
)
from quorum.core.contract.reasons import DisqualifiedReason, VoteRejection
from quorum.core.election.bootstrapping import why_not_bootstrapped, why_not_vote
from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.state.bootstrap_peer import VoterList, without
from quorum.core.state.peers import backoff_ms
from quorum.errors import ErrorCode
from quorum.types import ZERO_UUID, BootstrapState, ElectionState, ReplicaKey
from simulation.harness.core_disk import Disk
from tests.support.bootstrap_cluster import (
    OTHER,
    answer,
    bootstrap_state,
    core,
    events,
    fresh,
    incarnation,
    notify,
    question,
    receive,
    request,
    whole_voter_list,
)
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import FRESH, key


def test_all_agree_to_one_voter_list_before_an_election() -> None:
    cluster = fresh()
    cluster.settle()
    voter_lists = {bootstrap_state(cluster, each).voter_list for each in (1, 2, 3)}
    assert voter_lists == {whole_voter_list(cluster)}
    for node_id in (1, 2, 3):
        assert bootstrap_state(cluster, node_id).is_complete
        assert not core(cluster, node_id).is_bootstrapping
        assert why_not_vote(core(cluster, node_id)) is None
        assert events(cluster, node_id, BootstrapVotersAgreed) == [BootstrapVotersAgreed((1, 2, 3))]
        assert events(cluster, node_id, QuorumBootstrapped) == [QuorumBootstrapped((1, 2, 3))]
    cluster.advance(10_000)
    assert len(cluster.leaders()) == 1
    assert all(cluster.members[each].disk.election.bootstrap_state is None for each in (1, 2, 3))


def test_no_voter_campaigns_while_one_is_missing() -> None:
    """Two of three would be a majority. They continue to ask, and report the voter they wait for:
    without the third, the second has no complete voter list to accept either.
    """
    cluster = fresh()
    cluster.crash(3)
    cluster.advance(60_000)
    assert cluster.sent_by(1, VoteRequest) == cluster.sent_by(2, VoteRequest) == []
    assert why_not_bootstrapped(core(cluster, 1)) == (
        "bootstrap voters [3] have not reported that they are freshly formatted"
    )
    assert why_not_vote(core(cluster, 1)) == (VoteRejection.BOOTSTRAP_NOT_AGREED, "")
    cluster.members[3].is_up = True
    cluster.restart(3)
    cluster.advance(10_000)
    assert len(cluster.leaders()) == 1


def test_a_lone_voter_bootstraps_without_requests() -> None:
    cluster = fresh((1,))
    assert not core(cluster, 1).is_bootstrapping
    cluster.advance(5000)
    assert cluster.leaders() == [1]
    assert cluster.sent_by(1, BootstrapRequest) == []


def test_nothing_is_sent_before_it_is_durable() -> None:
    """Neither its incarnation id nor an accepted voter list is sent before it is durable."""
    cluster = CoreCluster(disks=dict.fromkeys((1, 2, 3), FRESH), autostart=False)
    cluster.slow_disks.add(1)
    for node_id in (1, 2, 3):
        cluster.start(node_id)
    cluster.call(1, lambda node: node.tick(cluster.now_ms))
    assert cluster.sent_by(1, BootstrapRequest) == []
    receive(cluster, 1, 2, request(cluster))
    assert cluster.sent_by(1, BootstrapResponse) == []
    cluster.persist(1)
    assert cluster.members[1].disk.election.bootstrap_state == BootstrapState(
        incarnation(cluster, 1)
    )
    assert answer(cluster, 1).incarnation_id == incarnation(cluster, 1)
    notify(cluster, 2, whole_voter_list(cluster))
    receive(cluster, 1, 2, request(cluster, request_id=78))
    assert answer(cluster, 1).request_id == 77
    cluster.persist(1)
    assert (answer(cluster, 1).request_id, answer(cluster, 1).voter_list) == (
        78,
        whole_voter_list(cluster),
    )
    assert cluster.members[1].disk.election.bootstrap_state == bootstrap_state(cluster, 1)


def test_an_incarnation_id_is_drawn_once() -> None:
    cluster = fresh()
    before = incarnation(cluster, 1)
    cluster.crash(1)
    cluster.restart(1)
    assert incarnation(cluster, 1) == before != ZERO_UUID


# Answering.


@pytest.mark.parametrize(
    ("changes", "error"),
    [
        ({"cluster_id": "other"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"epoch": 1}, ErrorCode.INVALID_REQUEST),
        ({"epoch": -1}, ErrorCode.INVALID_REQUEST),
        ({"incarnation_id": ZERO_UUID}, ErrorCode.INVALID_REQUEST),
        ({"voter_list": ((2, OTHER), (1, OTHER))}, ErrorCode.INVALID_REQUEST),
        ({"voter_list": ((1, OTHER), (1, OTHER))}, ErrorCode.INVALID_REQUEST),
        ({"sender": ReplicaKey(-1)}, ErrorCode.INVALID_REQUEST),
        ({"sender": key(1)}, ErrorCode.INVALID_REQUEST),
        ({"sender": key(7)}, ErrorCode.INVALID_VOTER_KEY),
        ({"sender": ReplicaKey(2, OTHER)}, ErrorCode.INVALID_VOTER_KEY),
        ({"voter": key(3)}, ErrorCode.INVALID_VOTER_KEY),
        ({"voter": ReplicaKey(1, OTHER)}, ErrorCode.INVALID_VOTER_KEY),
    ],
    ids=lambda value: value.name if isinstance(value, ErrorCode) else None,
)
def test_what_is_refused(changes: dict[str, Any], error: ErrorCode) -> None:
    """It changes nothing: no voter list is accepted, and this disk is not disqualified."""
    cluster = fresh()
    before = core(cluster, 1).election
    receive(cluster, 1, 2, request(cluster, **changes))
    refused = answer(cluster, 1)
    assert (refused.error, refused.incarnation_id, refused.voter_list) == (error, ZERO_UUID, ())
    assert core(cluster, 1).election == before


def test_a_bootstrapped_quorum_refuses_with_its_epoch() -> None:
    """That is how a second incarnation learns that it comes too late."""
    cluster = fresh()
    cluster.advance(10_000)
    assert len(cluster.leaders()) == 1
    receive(cluster, 1, 2, BootstrapRequest(5, CLUSTER, key(2), key(1), 0, OTHER))
    refused = answer(cluster, 1)
    assert (refused.error, refused.epoch) == (ErrorCode.FENCED_LEADER_EPOCH, cluster[1].epoch)
    assert refused.leader_id == cluster.leaders()[0]


def test_a_disk_that_took_part_reports_no_incarnation_id() -> None:
    """Epoch 0, but a record in its log: an upgrade, not a fresh format."""
    disks = dict.fromkeys((1, 2, 3), FRESH)
    disks[1] = Disk(ElectionState(disqualified="wiped"))
    cluster = CoreCluster(disks=disks)
    receive(cluster, 1, 2, request(cluster))
    assert answer(cluster, 1).error is ErrorCode.INELIGIBLE_REPLICA
    assert core(cluster, 1).election.bootstrap_state is None


# Voter lists of others.


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ("another life", DisqualifiedReason.EARLIER_FORMAT),
        ("not in it", DisqualifiedReason.NOT_IN_VOTER_LIST),
    ],
)
def test_a_voter_list_without_this_incarnation_disqualifies(
    change: str, reason: DisqualifiedReason
) -> None:
    """It learns this from a response, and stays disqualified for ever."""
    cluster = fresh()
    voter_list = (
        whole_voter_list(cluster, n1=OTHER)
        if change == "another life"
        else whole_voter_list(cluster)[1:]
    )
    notify(cluster, 2, voter_list)
    (event,) = events(cluster, 1, VoterDisqualified)
    assert event.reason is reason
    assert not cluster[1].is_voter
    assert why_not_vote(core(cluster, 1)) == (VoteRejection.DISQUALIFIED, event.detail)
    receive(cluster, 1, 2, request(cluster))
    assert answer(cluster, 1).error is ErrorCode.INELIGIBLE_REPLICA
    cluster.crash(1)
    cluster.restart(1)
    cluster.advance(20_000)
    assert not cluster[1].is_voter
    assert cluster.leaders() == []
    assert cluster.sent_by(1, VoteRequest) == []


@pytest.mark.parametrize("incarnations", [{"n1": OTHER}, {"n3": OTHER}, {}])
def test_nothing_is_concluded_from_a_question(incarnations: dict[str, bytes]) -> None:
    """A request may claim any sender; its content is only a reason to ask that voter."""
    cluster = fresh()
    voter_list = whole_voter_list(cluster, **incarnations)
    notify(cluster, 2, (), incarnation_id=incarnation(cluster, 2))
    before = len(cluster.sent_by(1, BootstrapRequest))
    receive(cluster, 1, 2, request(cluster, voter_list=voter_list))
    assert answer(cluster, 1).error is ErrorCode.NONE
    assert bootstrap_state(cluster, 1).voter_list == ()
    assert not core(cluster, 1).election.disqualified
    assert len(cluster.sent_by(1, BootstrapRequest)) == before + 1
    cluster.settle()
    assert bootstrap_state(cluster, 1).voter_list == whole_voter_list(cluster)


def test_a_complete_voter_list_with_this_incarnation_is_accepted() -> None:
    """Also where it knows an incarnation that this node has not learned itself."""
    cluster = fresh()
    cluster.isolate(3)
    voter_list = whole_voter_list(cluster, n3=OTHER)
    notify(cluster, 2, voter_list)
    assert bootstrap_state(cluster, 1).voter_list == voter_list
    # One voter list, ever.
    notify(cluster, 3, whole_voter_list(cluster))
    assert bootstrap_state(cluster, 1).voter_list == voter_list


@pytest.mark.parametrize("which", ["incomplete", "with a stranger"])
def test_a_voter_list_of_other_voters_is_not_agreed_to(which: str) -> None:
    cluster = fresh()
    voter_list = whole_voter_list(cluster)
    voter_list = voter_list[:2] if which == "incomplete" else (*voter_list, (9, OTHER))
    notify(cluster, 2, voter_list)
    assert bootstrap_state(cluster, 1).voter_list == ()
    assert not core(cluster, 1).election.disqualified


def test_different_voter_lists_never_add_up() -> None:
    """2 and 3 have accepted voter lists with different incarnations of 3: no voter campaigns, none
    is disqualified.
    """
    cluster = fresh()
    notify(cluster, 2, whole_voter_list(cluster, n3=OTHER))
    notify(cluster, 3, whole_voter_list(cluster))
    assert bootstrap_state(cluster, 1).voter_list == whole_voter_list(cluster, n3=OTHER)
    assert core(cluster, 1).is_bootstrapping
    assert events(cluster, 1, QuorumBootstrapped) == []


# Asking.


def test_a_question_without_an_answer_is_asked_again_after_growing_pauses() -> None:
    """Bounded by the configuration: a voter that is away for a day is not forgotten."""
    cluster = fresh((1, 2))
    cluster.crash(2)
    cluster.sent.clear()
    times: list[int] = []
    for _ in range(60_000 // 10):
        before = len(cluster.sent_by(1, BootstrapRequest))
        cluster.advance(10)
        times += [cluster.now_ms] * (len(cluster.sent_by(1, BootstrapRequest)) - before)
    pauses = [later - earlier for earlier, later in pairwise(times)]
    assert len(pauses) > 5
    timeout, longest = cluster.config.request_timeout_ms, backoff_ms(cluster.config, 1 << 20)
    # Time moves in steps of ten here.
    assert pauses[0] < timeout + longest // 2
    assert all(timeout - 10 <= each <= timeout + longest + 10 for each in pauses)
    assert pauses[-1] > pauses[0]


def known_of_others(cluster: CoreCluster) -> list[tuple[bytes, VoterList]]:
    """Incarnation id and voter list of every other bootstrap voter, as node 1 knows them."""
    peers = core(cluster, 1).bootstrap.peers.values()
    return [(each.incarnation_id, each.voter_list) for each in peers]


@pytest.mark.parametrize("which", ["never asked", "another id", "another sender", "a second time"])
def test_an_answer_that_was_not_asked_for_is_ignored(which: str) -> None:
    """Otherwise its incarnation would replace the reported one."""
    cluster = fresh()
    asked = question(cluster, 1, 2)
    response = BootstrapResponse(asked.request_id, ErrorCode.NONE, -1, 0, OTHER)
    sender = 2
    match which:
        case "never asked":
            sender = 9
        case "another id":
            response = replace(response, request_id=asked.request_id + 1000)
        case "another sender":
            sender = 3
        case _:
            notify(cluster, 2, ())
    before = known_of_others(cluster)
    receive(cluster, 1, sender, response)
    after = known_of_others(cluster)
    assert after == before
    assert len(events(cluster, 1, MessageIgnored)) == 1


def test_once_bootstrapped_no_question_is_open() -> None:
    """No node waits for node 3. Its late response may name an invented epoch."""
    cluster = fresh()
    core(cluster, 1).bootstrap.without = frozenset({3})
    asked = question(cluster, 1, 3)
    cluster.slow_disks.add(1)
    notify(cluster, 2, whole_voter_list(cluster))
    assert bootstrap_state(cluster, 1).is_complete
    late = BootstrapResponse(asked.request_id, ErrorCode.FENCED_LEADER_EPOCH, 3, 4)
    receive(cluster, 1, 3, late)
    assert len(events(cluster, 1, MessageIgnored)) == 1
    assert cluster[1].epoch == 0
    assert known_of_others(cluster) == []
    before = len(cluster.sent_by(1, BootstrapRequest))
    receive(cluster, 1, 2, request(cluster, voter_list=whole_voter_list(cluster)))
    cluster.persist(1)
    assert answer(cluster, 1).voter_list == whole_voter_list(cluster)
    assert len(cluster.sent_by(1, BootstrapRequest)) == before


def test_a_response_without_an_incarnation_or_with_an_error_does_not_count() -> None:
    cluster = fresh()
    notify(cluster, 2, (), incarnation_id=ZERO_UUID)
    asked = question(cluster, 1, 3)
    receive(
        cluster, 1, 3,
        BootstrapResponse(asked.request_id, ErrorCode.INVALID_VOTER_KEY, -1, 0, OTHER),
    )  # fmt: skip
    assert {known for known, _ in known_of_others(cluster)} == {ZERO_UUID}
    assert bootstrap_state(cluster, 1).voter_list == ()


def test_an_answer_from_an_epoch_bars_a_disk_that_took_no_part() -> None:
    """In the very write that raises the epoch."""
    cluster = fresh()
    asked = question(cluster, 1, 2)
    cluster.members[1].effects.clear()
    receive(cluster, 1, 2, BootstrapResponse(asked.request_id, ErrorCode.FENCED_LEADER_EPOCH, 2, 4))
    stored = [each.state for each in cluster.members[1].effects if hasattr(each, "state")]
    assert [(each.epoch, bool(each.disqualified), each.bootstrap_state) for each in stored] == [
        (4, True, None)
    ]


def test_a_disk_with_records_is_not_disqualified_by_an_epoch() -> None:
    """It has taken part before there was any bootstrap."""
    cluster = CoreCluster(disks={1: Disk(ElectionState(), log=((0, None),))})
    asked = question(cluster, 1, 2)
    receive(
        cluster, 1, 2, BootstrapResponse(asked.request_id, ErrorCode.FENCED_LEADER_EPOCH, -1, 3)
    )
    assert cluster[1].epoch == 3
    assert not core(cluster, 1).election.disqualified


def test_voter_lists_without_the_missing() -> None:
    """Those in ``bootstrap_without`` do not make voter lists differ."""
    voter_list = ((1, OTHER), (2, OTHER), (3, OTHER))
    assert without(voter_list, frozenset()) == voter_list
    assert without(voter_list, frozenset({2, 9})) == (voter_list[0], voter_list[2])
    assert without((), frozenset({1})) == ()
