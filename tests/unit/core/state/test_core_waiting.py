"""Reads that wait: rounds of a leader, and requests for a position elsewhere. Containers alone."""

from __future__ import annotations

from quorum.core.messages.read_messages import ReadRound
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.read_rounds import Asker, PendingRead, ReadRounds
from quorum.core.state.waiting_reads import ForwardedRead, WaitingReads


def read(token: int) -> PendingRead:
    return PendingRead(token, 10)


def asked(sender: int, request_id: int) -> PendingRead:
    return PendingRead(0, 10, Asker(sender, request_id))


def test_a_read_is_confirmed_by_a_round_that_began_with_it_or_later() -> None:
    rounds = ReadRounds(4, 100)
    assert rounds.stamp == ReadRound(4, 1)
    assert (rounds.current, rounds.as_of_ms) == ([], -1)
    assert rounds.add(read(1), 110)
    assert rounds.stamp == ReadRound(4, 2)
    assert not rounds.add(read(2), 120), "it waits for the next round"
    assert len(rounds) == 2
    assert rounds.current
    assert rounds.confirm(1, 130) == []
    assert rounds.as_of_ms == -1, "an old round proves nothing"
    assert rounds.confirm(2, 140) == [read(1)]
    assert (rounds.stamp.number, rounds.as_of_ms) == (3, 110)
    assert rounds.confirm(2, 145) == []
    assert rounds.confirm(3, 150) == [read(2)]
    assert (rounds.as_of_ms, rounds.current, len(rounds)) == (140, [], 0)


def test_rounds_follow_one_another_without_reads() -> None:
    rounds = ReadRounds(1, 100)
    assert rounds.confirm(1, 200) == []
    assert (rounds.stamp.number, rounds.as_of_ms) == (2, 100)


def test_a_repeated_request_takes_the_place_of_the_earlier_one() -> None:
    """Method: in the same round; other senders, and this node's own reads, stay."""
    rounds = ReadRounds(1, 0)
    rounds.add(asked(2, 1), 0)
    for each in (asked(2, 2), asked(3, 1), read(7), asked(2, 3)):
        assert not rounds.add(each, 0)
    assert rounds.confirm(2, 0) == [asked(2, 1)]
    assert rounds.confirm(3, 0) == [asked(3, 1), read(7), asked(2, 3)]


def test_all_waiting_reads_can_be_taken() -> None:
    rounds = ReadRounds(1, 0)
    rounds.add(read(1), 0)
    rounds.add(read(2), 0)
    assert rounds.take_all() == [read(1), read(2)]
    assert (len(rounds), rounds.current) == (0, [])


def waiting(*deadlines: int) -> WaitingReads:
    reads = WaitingReads()
    for token, deadline_ms in enumerate(deadlines, 1):
        reads.add(ForwardedRead(token, deadline_ms))
    return reads


def test_an_answer_is_for_the_reads_that_were_there_when_it_was_asked_for() -> None:
    reads = waiting(10, 20)
    assert (reads.asked, reads.earliest_deadline_ms, len(reads)) == (0, 10, 2)
    reads.ask(2)
    assert (reads.asked, reads.request.peer) == (2, 2)
    reads.add(ForwardedRead(3, 30))
    assert reads.asked == 2
    assert [each.token for each in reads.answered()] == [1, 2]
    assert reads.asked == 0
    assert reads.answered() == []
    assert reads.earliest_deadline_ms == 30


def test_failures_are_counted_until_an_answer_or_another_leader() -> None:
    for forget in (WaitingReads.answered, WaitingReads.recall, WaitingReads.take_all):
        reads = waiting(10)
        reads.request.failures, reads.request.due_ms = 2, 800
        reads.ask(2)
        assert (reads.request.failures, reads.request.due_ms) == (2, 800)
        forget(reads)
        assert (reads.request.failures, reads.request.due_ms, reads.asked) == (0, 0, 0)


def test_reads_expire_at_their_deadline_and_the_request_is_for_the_rest() -> None:
    reads = waiting(10, 20, 30)
    reads.ask(2)
    assert reads.take_expired(9) == []
    assert reads.asked == 3
    assert [each.token for each in reads.take_expired(20)] == [1, 2]
    assert reads.asked == 1
    assert [each.token for each in reads.take_expired(30)] == [3]
    assert (reads.asked, len(reads), reads.earliest_deadline_ms) == (0, 0, NEVER_MS)


def test_a_read_that_no_request_is_for_may_expire_too() -> None:
    reads = waiting(10)
    reads.ask(2)
    reads.add(ForwardedRead(2, 10))
    assert len(reads.take_expired(10)) == 2
    assert reads.asked == 0


def test_all_reads_can_be_taken() -> None:
    reads = waiting(10, 20)
    assert [each.token for each in reads.take_all()] == [1, 2]
    assert len(reads) == 0
