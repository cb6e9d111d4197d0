"""Read rounds of a leader: the Fetches it answers early, echoes that count, and confirmations."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import AddVoter, RemoveVoter
from quorum.core.contract.output import Output, ReadConfirmed
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse, ReadRound
from quorum.core.voters.versions import OWN_KRAFT_VERSIONS
from quorum.errors import ErrorCode
from quorum.types import NodeId, ReplicaKey
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import key, voter
from tests.support.lone_leader import LoneLeader, fetch_answers


def read(cluster: LoneLeader, token: int) -> Output:
    return cluster.call(1, lambda node: node.read(cluster.now_ms, token))


def round_sent(cluster: LoneLeader) -> ReadRound:
    """Return the leader's current round, from its response to an observer's Fetch without wait."""
    (answer,) = fetch_answers(cluster.fetch(99, max_wait_ms=0))
    return answer.read_round


def confirmed(cluster: LoneLeader) -> list[int]:
    responses = cluster.members[1].progress
    return [each.token for each in responses if isinstance(each, ReadConfirmed)]


def ask(cluster: CoreCluster, number: int = 5, **fields: Any) -> list[ReadPositionResponse]:
    """A replica's request for a position; what is answered at once."""
    values = {"cluster_id": CLUSTER, "replica": key(9), "epoch": cluster[1].epoch, **fields}
    request = ReadPositionRequest(number, **values)
    output = cluster.call(1, lambda node: node.receive(cluster.now_ms, 9, request))
    return positions(output)


def positions(output: Output) -> list[ReadPositionResponse]:
    sent = [each.message for each in output.immediate]
    return [each for each in sent if isinstance(each, ReadPositionResponse)]


def test_who_waits_for_the_next_round_is_not_kept_waiting_for_the_next_fetch() -> None:
    """Goal: every voter learns of a new round. Method: of five voters, one echoes and waits again;
    the echo of another confirms the round while a read waits for the next one."""
    cluster = LoneLeader((1, 2, 3, 4, 5))
    read(cluster, 1)
    first = round_sent(cluster)
    read(cluster, 2)
    assert fetch_answers(cluster.fetch(3, read_round=first)) == [], "it has echoed, and waits"
    output = cluster.fetch(2, read_round=first)
    assert confirmed(cluster) == [1]
    responses = {each.to: each.message for each in output.immediate}
    assert sorted(responses) == [2, 3]
    (second,) = {each.read_round for each in responses.values()}  # type: ignore[union-attr]
    assert second.number == first.number + 1
    cluster.fetch(2, read_round=second)
    cluster.fetch(3, read_round=second)
    assert confirmed(cluster) == [1, 2]


def test_an_observer_is_hurried_by_no_round_and_proves_none() -> None:
    """Method: it waits during a round, echoes it, and becomes a voter before a majority has."""
    cluster = LoneLeader((1, 2))
    cluster.fetch(9)
    read(cluster, 7)
    stamp = round_sent(cluster)
    assert fetch_answers(cluster.fetch(9)) == []
    cluster.fetch(9, read_round=stamp)
    cluster.report(AddVoter(8, voter(9)))
    probe = [
        each
        for _, to, each in cluster.sent
        if to == 9 and isinstance(each, BeginQuorumEpochRequest)
    ][-1]
    answer = BeginQuorumEpochResponse(
        probe.request_id, ErrorCode.NONE, 1, cluster[1].epoch, supported=(OWN_KRAFT_VERSIONS,)
    )
    cluster.call(1, lambda node: node.receive(cluster.now_ms, 9, answer))
    assert len(cluster[1].voters) == 3
    assert confirmed(cluster) == []
    cluster.fetch(9, read_round=stamp)
    assert confirmed(cluster) == [7]


def test_a_leader_that_removes_itself_proves_nothing_by_its_own_echo() -> None:
    cluster = LoneLeader()
    behind = cluster[1].log_end_offset
    cluster.report(RemoveVoter(8, key(1)))
    read(cluster, 7)
    stamp = round_sent(cluster)
    cluster.fetch(2, behind, read_round=stamp)
    assert confirmed(cluster) == []
    cluster.fetch(3, behind, read_round=stamp)
    assert confirmed(cluster) == [7]


def test_another_replicas_read_is_answered_with_the_position_once_a_majority_has_echoed() -> None:
    cluster = LoneLeader()
    assert ask(cluster) == []
    output = cluster.fetch(2, read_round=round_sent(cluster))
    (answer,) = positions(output)
    assert (answer.request_id, answer.error, answer.epoch) == (5, ErrorCode.NONE, 1)
    assert (answer.leader_id, answer.read_offset) == (1, cluster[1].high_watermark)
    assert confirmed(cluster) == []


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"cluster_id": "another"}, ErrorCode.INCONSISTENT_CLUSTER_ID),
        ({"replica": key(1)}, ErrorCode.INVALID_REQUEST),
        ({"replica": ReplicaKey(-2)}, ErrorCode.INVALID_REQUEST),
        ({"epoch": 0}, ErrorCode.FENCED_LEADER_EPOCH),
        ({"epoch": 2}, ErrorCode.UNKNOWN_LEADER_EPOCH),
    ],
)
def test_a_position_is_refused_with_a_reason(fields: dict[str, Any], error: ErrorCode) -> None:
    (answer,) = ask(LoneLeader(), **fields)
    assert (answer.error, answer.leader_id) == (error, 1)


def test_positions_and_reads_share_one_bound() -> None:
    cluster = LoneLeader(config=QuorumConfig(pending_reads_max=2))
    read(cluster, 7)
    assert ask(cluster, 1) == []
    (answer,) = ask(cluster, 2, replica=key(8))
    assert answer.error is ErrorCode.QUEUE_FULL


def test_a_leader_that_has_committed_nothing_knows_no_position() -> None:
    """Its high watermark may lie below what an earlier leader acknowledged."""
    cluster = CoreCluster()
    cluster.elect_without_replicating(1)
    assert cluster[1].is_leader
    (answer,) = ask(cluster)
    assert answer.error is ErrorCode.OFFSET_NOT_AVAILABLE


@pytest.mark.parametrize("follower", [2, 3])
def test_a_follower_refuses_a_position_and_names_the_leader(follower: NodeId) -> None:
    cluster = CoreCluster()
    cluster.elect(1)
    request = ReadPositionRequest(5, CLUSTER, key(9), cluster[1].epoch)
    output = cluster.call(follower, lambda node: node.receive(cluster.now_ms, 9, request))
    (answer,) = positions(output)
    assert (answer.error, answer.leader_id) == (ErrorCode.NOT_LEADER_OR_FOLLOWER, 1)
