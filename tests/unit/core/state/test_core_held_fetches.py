"""Which held Fetches a change makes answerable, each container operation at its bound."""

from __future__ import annotations

from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.read_messages import ReadRound
from quorum.core.state.held_fetches import HELD_PER_VOTER_MAX, NEVER_MS, HeldFetch, HeldFetches
from quorum.types import NO_NODE, NodeId, ReplicaKey
from tests.support.core_disk import key

CONSUMER = ReplicaKey(NO_NODE)


def fetch(
    sender: NodeId,
    offset: int = 10,
    *,
    request_id: int = 1,
    knows: int = 0,
    deadline_ms: int = 1_000,
    is_voter: bool = False,
    is_consumer: bool = False,
    stamp: int = 0,
) -> HeldFetch:
    request = FetchRequest(
        request_id, "c", CONSUMER if is_consumer else key(sender), 1, offset, 1, knows,
        read_round=ReadRound(1, stamp),
    )  # fmt: skip
    return HeldFetch(sender, request, deadline_ms, is_voter, is_consumer)


def holding(*fetches: HeldFetch) -> HeldFetches:
    held = HeldFetches()
    for each in fetches:
        assert held.hold(each) == []
    return held


def deadlines(held: HeldFetches) -> list[int]:
    return [each.deadline_ms for each in held.take_all()]


def test_replicas_wait_for_records_and_consumers_for_commits() -> None:
    """Method: positions at a bound and below it."""
    replica, level = fetch(1, 9), fetch(2, 10)
    early, late = fetch(3, 4, is_consumer=True), fetch(4, 5, is_consumer=True)
    held = holding(replica, level, early, late)
    assert held.take_below(10, 5) == [replica, early]
    assert len(held) == 2
    assert held.take_below(11, 6) == [level, late]
    assert held.earliest_ms == NEVER_MS


def test_a_replica_with_an_older_high_watermark_is_answered() -> None:
    unaware, aware = fetch(1, 50, knows=4), fetch(2, 1, knows=5)
    covered, uncovered = fetch(3, 5, is_consumer=True), fetch(4, 4, is_consumer=True, knows=9)
    held = holding(unaware, aware, covered, uncovered)
    assert held.take_unaware_of(5) == [unaware, uncovered]
    assert held.take_all() == [aware, covered]


def test_only_consumers_below_the_high_watermark_are_taken() -> None:
    replica, at, below = fetch(1, 1), fetch(2, 5, is_consumer=True), fetch(3, 4, is_consumer=True)
    assert holding(replica, at, below).take_consumers_below(5) == [below]


def test_a_relay_answers_positions_up_to_its_high_watermark() -> None:
    at, above = fetch(1, 5), fetch(2, 6)
    assert holding(at, above).take_up_to(5) == [at]


def test_voters_that_have_not_echoed_the_round_are_taken() -> None:
    echoed, silent = fetch(1, stamp=3, is_voter=True), fetch(2, stamp=2, is_voter=True)
    held = holding(echoed, silent, fetch(3, stamp=2))
    assert held.take_without_echo(ReadRound(1, 3)) == [silent]


def test_what_is_due_is_taken_and_the_earliest_is_known_again() -> None:
    due, later = fetch(1, deadline_ms=100), fetch(2, deadline_ms=101)
    held = holding(later, due)
    assert held.earliest_ms == 100
    assert held.take_due(99) == []
    assert held.take_due(100) == [due]
    assert held.earliest_ms == 101
    assert held.take_due(101) == [later]
    assert held.earliest_ms == NEVER_MS


def test_hastening_shortens_the_wait_of_the_replicas_concerned() -> None:
    """Method: behind and level, sooner and later, and a consumer, for both ways of hastening."""
    for hasten in (HeldFetches.hasten_below, HeldFetches.hasten_unaware_of):
        held = holding(
            fetch(1, 9, knows=9, deadline_ms=1_000),
            fetch(2, 10, knows=10, deadline_ms=1_000),
            fetch(3, 9, knows=9, deadline_ms=400),
            fetch(4, 9, knows=9, deadline_ms=1_000, is_consumer=True),
        )
        hasten(held, 10, 500)
        assert held.earliest_ms == 400
        assert deadlines(held) == [500, 1_000, 400, 1_000]
    held = holding(fetch(1, 9, deadline_ms=1_000))
    held.hasten_below(10, 500)
    assert held.earliest_ms == 500


def test_the_voters_that_have_most_go_first() -> None:
    """Method: more voters than asked for, then as many; the quickest of equals comes first."""
    slow, first, second = (fetch(each, at, is_voter=True) for each, at in ((1, 3), (2, 8), (3, 8)))
    behind, level = fetch(4, 2), fetch(5, 3)
    consumer = fetch(6, 1, is_consumer=True)
    held = holding(slow, first, second, behind, level, consumer)
    assert held.take_ahead(1, 2) == [first, behind]
    assert held.take_ahead(2, 0) == [slow, second]
    assert held.take_all() == [level, consumer]


def test_a_repeated_request_displaces_itself_and_a_voter_has_a_bounded_number() -> None:
    held = HeldFetches()
    first = fetch(1, request_id=1)
    assert held.hold(first) == []
    assert held.hold(fetch(1, request_id=1)) == [first]
    assert held.hold(fetch(2, request_id=1)) == []
    of_voter = [fetch(3, request_id=each, is_voter=True) for each in range(HELD_PER_VOTER_MAX + 1)]
    for each in of_voter[:-1]:
        assert held.hold(each) == []
    assert held.hold(of_voter[-1]) == [of_voter[0]]
    assert len(held) == 2 + HELD_PER_VOTER_MAX


def test_requests_that_were_answered_do_not_count_against_a_voter() -> None:
    held = HeldFetches()
    for number in range(HELD_PER_VOTER_MAX * 2):
        each = fetch(3, request_id=number, is_voter=True)
        assert held.hold(each) == []
        assert held.take_all() == [each]


def test_the_bound_of_a_voter_is_not_that_of_an_observer() -> None:
    """The caller bounds observers, over all of them."""
    held = HeldFetches()
    for number in range(HELD_PER_VOTER_MAX + 1):
        assert held.hold(fetch(3, request_id=number)) == []
    assert len(held) == HELD_PER_VOTER_MAX + 1


def test_what_is_left_is_due_when_the_first_of_it_is() -> None:
    held = holding(*(fetch(each, deadline_ms=100 * each) for each in (3, 5, 4, 6)))
    assert [each.sender for each in held.take_due(300)] == [3]
    assert held.earliest_ms == 400
    assert [each.sender for each in held.take_due(500)] == [5, 4]
    assert held.earliest_ms == 600


def test_consumers_are_taken_once_and_replicas_stay() -> None:
    covered, uncovered = fetch(3, 5, is_consumer=True), fetch(4, 4, is_consumer=True)
    held = holding(fetch(1, 4), covered, uncovered)
    assert held.take_consumers_below(5) == [uncovered]
    assert held.take_consumers_below(5) == []
    assert held.take_consumers_below(6) == [covered]
    assert [each.sender for each in held.take_all()] == [1]
