"""Reads at a follower: its request to the leader, the reads it covers, and their timeouts."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import RequestFailed
from quorum.core.contract.output import Output, ReadConfirmed, ReadFailed
from quorum.core.messages.message_types import Message
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import NodeId
from tests.support.core_cluster import CoreCluster
from tests.support.core_situations import SITUATIONS
from tests.support.lone_leader import LoneLeader

CONFIG = QuorumConfig(append_delay_ms=0, high_watermark_delay_ms=0, pending_reads_max=3)
PATIENCE_MS = 2 * CONFIG.fetch_timeout_ms


class WithoutPositions(CoreCluster):
    """Every request for a position is lost."""

    def post(self, sender: NodeId, to: NodeId, message: Message) -> None:
        super().post(sender, to, message)
        self.queue = [each for each in self.queue if not isinstance(each[2], ReadPositionRequest)]


class Asking:
    """Node 2 follows leader 1, which answers its Fetches and none of its questions."""

    def __init__(self) -> None:
        self.cluster = WithoutPositions(config=CONFIG)
        self.cluster.elect(1)
        self.cluster.advance(600)
        self.seen = 0

    def ask(self, token: int) -> None:
        self.take(lambda node: node.ask_position(self.cluster.now_ms, token))

    def take(self, entry: Any) -> Output:
        return self.cluster.call(2, entry)

    def advance(self, ms: int) -> None:
        """Let time pass, and node 2 do what is due at the end of it."""
        self.cluster.advance(ms)
        self.cluster.tick(2)
        self.cluster.settle()

    def asked(self) -> list[int]:
        """The numbers of the requests since the last call."""
        numbers = [each.request_id for each in self.cluster.sent_by(2, ReadPositionRequest)]
        new, self.seen = numbers[self.seen :], len(numbers)
        return new

    def answer(self, number: int, offset: int = 3, **fields: Any) -> None:
        values = {"error": ErrorCode.NONE, "leader_id": 1, "epoch": 1, **fields}
        response = ReadPositionResponse(number, read_offset=offset, **values)
        self.take(lambda node: node.receive(self.cluster.now_ms, 1, response))

    def ended(self) -> list[object]:
        reported = self.cluster.members[2].progress
        return [each for each in reported if isinstance(each, ReadConfirmed | ReadFailed)]

    def fired(self, timer: Timer) -> int:
        return self.cluster[2].timers_fired[timer, Purpose.READ_POSITION]


def test_one_request_covers_the_reads_that_waited_when_it_was_sent() -> None:
    """And the next one leaves with its answer, for those that have come meanwhile."""
    node = Asking()
    node.ask(1)
    (first,) = node.asked()
    node.ask(2)
    node.ask(3)
    assert node.asked() == []
    node.answer(first)
    assert node.ended() == [ReadConfirmed(1, 3)]
    (second,) = node.asked()
    node.answer(second, 4)
    assert node.ended() == [ReadConfirmed(1, 3), ReadConfirmed(2, 4), ReadConfirmed(3, 4)]
    assert node.asked() == []


def test_more_reads_than_may_wait_fail_at_once() -> None:
    node = Asking()
    for token in range(1, 6):
        node.ask(token)
    assert node.ended() == [ReadFailed(4), ReadFailed(5)]


def test_a_read_waits_for_two_fetch_timeouts() -> None:
    node = Asking()
    node.ask(1)
    node.advance(PATIENCE_MS - 10)
    assert node.ended() == []
    node.advance(10)
    assert node.ended() == [ReadFailed(1)]
    assert node.cluster[2].timers_fired[Timer.READ_PATIENCE] == 1


def test_a_request_without_an_answer_is_sent_again_after_its_time_and_a_back_off() -> None:
    """An answer to the first one comes too late; the second speaks for all reads that wait."""
    node = Asking()
    node.ask(1)
    (first,) = node.asked()
    node.ask(2)
    node.advance(CONFIG.request_timeout_ms + CONFIG.retry_backoff_ms)
    (second,) = node.asked()
    assert (node.fired(Timer.REQUEST_TIMEOUT), node.fired(Timer.RETRY_BACKOFF)) == (1, 1)
    node.answer(first)
    assert node.ended() == []
    node.answer(second)
    assert node.ended() == [ReadConfirmed(1, 3), ReadConfirmed(2, 3)]


@pytest.mark.parametrize("is_refused", [False, True])
def test_a_failed_request_leaves_reads_waiting_for_the_next_one(is_refused: bool) -> None:
    """Goal: no read is confirmed by a request that left before it came. Method: fail, and let
    another read come before the next attempt; then the first read alone expires."""
    node = Asking()
    node.ask(1)
    (first,) = node.asked()
    if is_refused:
        node.answer(first, error=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    else:
        failed = RequestFailed(1, first)
        node.take(lambda raft: raft.on_local_event(node.cluster.now_ms, failed))
    assert node.asked() == []
    node.ask(2)
    assert node.asked() == [], "not before the back-off"
    node.advance(CONFIG.retry_backoff_ms)
    (second,) = node.asked()
    node.answer(second, 5)
    assert node.ended() == [ReadConfirmed(1, 5), ReadConfirmed(2, 5)]


def test_a_request_whose_reads_have_all_expired_is_given_up_for_those_that_came_later() -> None:
    """Method: the second attempt is under way when its only read expires."""
    node = Asking()
    node.ask(1)
    node.advance(PATIENCE_MS - 500)
    assert len(node.asked()) == 2
    node.ask(2)
    assert node.asked() == []
    node.advance(500)
    assert node.ended() == [ReadFailed(1)]
    (number,) = node.asked()
    node.answer(number)
    assert node.ended() == [ReadFailed(1), ReadConfirmed(2, 3)]


def test_a_request_is_given_up_with_its_last_read() -> None:
    """A read that comes in the next moment is asked for at once."""
    node = Asking()
    node.ask(1)
    node.advance(PATIENCE_MS)
    assert node.ended() == [ReadFailed(1)]
    node.asked()
    node.ask(2)
    (number,) = node.asked()
    node.answer(number)
    assert node.ended() == [ReadFailed(1), ReadConfirmed(2, 3)]


def test_a_leader_confirms_its_own_reads_by_a_round() -> None:
    cluster = LoneLeader()
    output = cluster.call(1, lambda node: node.ask_position(cluster.now_ms, 7))
    assert output.progress == []
    cluster.fetch(2)
    rounds = [each.message.read_round for each in output.immediate]  # type: ignore[union-attr]
    output = cluster.fetch(3, read_round=rounds[-1])
    assert ReadConfirmed(7, cluster[1].high_watermark) in output.progress


def test_reads_that_waited_for_a_leader_are_confirmed_by_the_node_that_comes_to_lead() -> None:
    """Also those that came while its leadership was not durable yet."""
    cluster, leader = SITUATIONS["leader-before-durable"]()
    output = cluster.call(leader, lambda node: node.ask_position(cluster.now_ms, 7))
    assert [each for each in output.progress if isinstance(each, ReadFailed)] == []
    cluster.slow_disks.clear()
    cluster.persist(leader)
    cluster.settle()
    cluster.advance(600)
    assert ReadConfirmed(7, cluster[leader].high_watermark) in cluster.members[leader].progress
