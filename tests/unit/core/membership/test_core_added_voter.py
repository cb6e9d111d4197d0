"""A voter change reaches only some followers, and the leader dies: the others continue.

A replica without the record may not know that it is a voter. It must still grant pre-votes as soon
as its leader is silent (ADR 35), and it gets the record without delay (ADR 34).
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, combinations
from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import AddVoter, ConnectionRefused, LocalEvent, RemoveVoter
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, BeginQuorumEpochResponse
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.types import LOG_BEGINNING, NodeId
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import key, voter

CONFIG = QuorumConfig()
AT_ONCE = QuorumConfig(append_delay_ms=0, high_watermark_delay_ms=0)
GONE_MS = 2 * CONFIG.election_timeout_ms
SILENT_MS = CONFIG.fetch_timeout_ms + 8 * CONFIG.election_timeout_ms
"""Far more than the rounds that these seeds need: a bound, and no measure."""
ADDED = 9


def change_voters(cluster: CoreCluster, event: LocalEvent, reached: tuple[NodeId, ...]) -> None:
    """Leader 1 appends a voters record that gets to ``reached`` only."""
    others = [each for each in cluster.members if each not in (1, *reached)]
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, event))
    cluster.deliver(ADDED, BeginQuorumEpochRequest)
    cluster.deliver(1, BeginQuorumEpochResponse)
    cluster.cut |= {(1, each) for each in others} | {(each, 1) for each in others}
    cluster.settle()


def can_elect(cluster: CoreCluster, alive: list[NodeId]) -> bool:
    """Return whether a candidate can get a majority of its own voter set from logs up to its own.

    A voter that an uncommitted record removes may campaign, without its own vote.
    """
    for node_id in alive:
        node = cluster[node_id]
        ids = [each.key.id for each in node.voters]
        granting = [
            each
            for each in alive
            if each in ids and node.log_end.is_at_least(cluster[each].log_end)
        ]
        if (node_id in ids or node.removed_voters) and len(granting) > len(ids) // 2:
            return True
    return False


def cases() -> Iterator[tuple[int, str, tuple[NodeId, ...]]]:
    """Two to five voters; one is added or removed; every subset of the followers is reached."""
    for count in (2, 3, 4, 5):
        followers = tuple(range(2, count + 1))
        for kind, all_ in (("add", (*followers, ADDED)), ("remove", followers)):
            subsets = chain.from_iterable(combinations(all_, size) for size in range(len(all_) + 1))
            for reached in subsets:
                yield count, kind, reached


@pytest.mark.parametrize(
    "death",
    ["killed", *(pytest.param(each, marks=pytest.mark.long) for each in ("silent", "cut off"))],
)
@pytest.mark.parametrize(("count", "kind", "reached"), tuple(cases()))
def test_the_remaining_voters_elect_a_leader(
    count: int, kind: str, reached: tuple[NodeId, ...], death: str
) -> None:
    """Goal: voters that can elect a leader always do.

    Method: every subset of the followers gets the record, then the leader dies in three ways.
    """
    cluster = CoreCluster(tuple(range(1, count + 1)), (ADDED,), config=AT_ONCE)
    cluster.elect(1)
    cluster.advance(1_500)
    event: LocalEvent = AddVoter(7, voter(ADDED)) if kind == "add" else RemoveVoter(7, key(count))
    change_voters(cluster, event, reached)
    cluster.heal()
    alive = [each for each in cluster.members if each != 1]
    if death == "cut off":
        cluster.isolate(1)
    else:
        cluster.crash(1)
    if death == "killed":
        refused = ConnectionRefused(1)
        for each in alive:
            cluster.call(each, lambda node: node.on_local_event(cluster.now_ms, refused))
    is_expected = can_elect(cluster, alive)
    cluster.advance(GONE_MS if death == "killed" else SILENT_MS)
    leaders = [each for each in cluster.leaders() if each != 1]
    assert len(leaders) == is_expected
    if leaders:
        leader = cluster[leaders[0]]
        level = [each.key.id for each in leader.voters if each.key.id in alive]
        assert {cluster[each].high_watermark for each in level} == {leader.log_end.offset}


def asks_for_a_pre_vote(cluster: CoreCluster, candidate: NodeId, of: NodeId) -> bool:
    """Whether ``of`` would elect ``candidate``."""
    node = cluster[candidate]
    request = VoteRequest(5, "cluster", node.me, key(of), node.epoch, node.log_end, pre_vote=True)
    before = len(cluster.sent_by(of, VoteResponse))
    cluster.call(of, lambda each: each.receive(cluster.now_ms, candidate, request))
    (answer,) = cluster.sent_by(of, VoteResponse)[before:]
    return answer.granted


def test_an_observer_refuses_pre_votes_only_while_its_leader_answers() -> None:
    cluster = CoreCluster((1, 2, 3), (ADDED,))
    cluster.elect(1)
    cluster.advance(5_000)
    assert cluster[2].log_end != LOG_BEGINNING
    assert not asks_for_a_pre_vote(cluster, 2, of=ADDED)
    cluster.isolate(ADDED)
    cluster.advance(CONFIG.fetch_timeout_ms - CONFIG.fetch_max_wait_ms - 1)
    assert not asks_for_a_pre_vote(cluster, 2, of=ADDED)
    cluster.advance(CONFIG.fetch_max_wait_ms + 1)
    assert asks_for_a_pre_vote(cluster, 2, of=ADDED)
    cluster.heal()
    cluster.advance(3_000)
    assert not asks_for_a_pre_vote(cluster, 2, of=ADDED)


def test_an_observer_grants_pre_votes_at_once_when_the_leaders_process_is_gone() -> None:
    cluster = CoreCluster((1, 2, 3), (ADDED,))
    cluster.elect(1)
    cluster.advance(5_000)
    cluster.isolate(1)
    cluster.call(ADDED, lambda node: node.on_local_event(cluster.now_ms, ConnectionRefused(1)))
    assert asks_for_a_pre_vote(cluster, 2, of=ADDED)
    assert cluster[ADDED].role_name == "Follower"


def test_a_process_that_stood_still_as_an_observer_gives_its_leader_a_moment() -> None:
    cluster = CoreCluster((1, 2, 3), (ADDED,))
    cluster.elect(1)
    cluster.advance(5_000)
    cluster.isolate(ADDED)
    late_ms = CONFIG.fetch_timeout_ms
    cluster.advance(late_ms)
    cluster.call(ADDED, lambda node: node.process_paused(cluster.now_ms, late_ms))
    assert not asks_for_a_pre_vote(cluster, 2, of=ADDED)
    cluster.advance(CONFIG.fetch_timeout_ms // 4)
    assert asks_for_a_pre_vote(cluster, 2, of=ADDED)


@pytest.mark.parametrize("voters", [(1, 2), (1, 2, 3), (1, 2, 3, 4, 5)])
def test_the_voters_record_is_served_without_delay(voters: tuple[NodeId, ...]) -> None:
    """Goal: the append delay does not apply to it. Method: every Fetch is held at the append."""
    cluster = CoreCluster(voters, (ADDED,), config=CONFIG)
    cluster.elect(1)
    cluster.advance(1_450)
    before = {each: len(_served(cluster, each)) for each in (*voters[1:], ADDED)}
    change_voters(cluster, AddVoter(7, voter(ADDED)), ())
    assert cluster[1].voters_offset == cluster[1].log_end.offset - 1
    for each, count in before.items():
        (answer,) = _served(cluster, each)[count:]
        assert answer.records.end_offset == cluster[1].log_end.offset


def _served(cluster: CoreCluster, to: NodeId) -> list[Any]:
    return [
        each
        for sender, receiver, each in cluster.sent
        if (sender, receiver) == (1, to) and isinstance(each, FetchResponse) and each.records
    ]


def test_a_fetch_that_comes_after_the_record_does_not_wait_for_it_either() -> None:
    """Method: the new voter's Fetch is on its way while the record is appended."""
    cluster = CoreCluster((1, 2), (ADDED,), config=CONFIG)
    cluster.elect(1)
    cluster.advance(1_500)
    cluster.hold.add((ADDED, 1))
    cluster.advance(CONFIG.fetch_max_wait_ms)
    (fetch,) = [each for _, _, each in cluster.queue if isinstance(each, FetchRequest)]
    assert fetch.replica == key(ADDED)
    cluster.hold.clear()
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, AddVoter(7, voter(ADDED))))
    cluster.deliver(ADDED, BeginQuorumEpochRequest)
    cluster.deliver(1, BeginQuorumEpochResponse)
    cluster.deliver(2)
    before = len(_served(cluster, ADDED))
    cluster.deliver(1, FetchRequest)
    (answer,) = _served(cluster, ADDED)[before:]
    assert answer.records.end_offset == cluster[1].log_end.offset
