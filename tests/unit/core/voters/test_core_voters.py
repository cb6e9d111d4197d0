"""Voter sets and their history by offset."""

from __future__ import annotations

import pytest

from quorum.core.messages.received_records import VotersAt
from quorum.core.voters.voter_set import NO_VOTERS, VoterHistory, VoterSet
from quorum.incarnation import LogIncarnation
from quorum.types import ZERO_UUID, OffsetAndEpoch, ReplicaKey
from tests.support.core_disk import key, voter


def test_membership_is_by_id_and_disk() -> None:
    """Goal: a re-formatted voter is not the voter. Method: ask with three directories."""
    voters = VoterSet([voter(2), voter(1)])
    assert voters.ids == (1, 2)
    assert voters.contains(key(1))
    assert voters.contains(ReplicaKey(1, ZERO_UUID))
    assert not voters.contains(ReplicaKey(1, b"another disk 16B"))
    assert not voters.contains(key(3))


@pytest.mark.parametrize(("ids", "problem"), [((1, 1), "twice"), ((2, -1), "voter id -1")])
def test_a_set_with_senseless_ids_is_refused(ids: tuple[int, ...], problem: str) -> None:
    """Goal: no quorum over nonsense. Method: a double and a negative id."""
    with pytest.raises(ValueError, match=problem):
        VoterSet([voter(each) for each in ids])


def test_the_smallest_id_is_zero_and_a_set_may_be_empty() -> None:
    assert VoterSet([voter(0)]).ids == (0,)
    assert VoterSet([]).ids == ()
    assert VoterSet([voter(1)]).endpoints_of(1) == voter(1).endpoints
    assert VoterSet([voter(1)]).endpoints_of(2) == ()


def test_who_was_removed_is_part_of_the_set() -> None:
    """A set with a tombstone is another one; adding the same replica lifts its tombstone alone."""
    both = VoterSet([voter(1), voter(2)], [key(5)])
    without = both.removing(key(2))
    assert without.ids == (1,)
    assert without.removed == (key(2), key(5))
    assert without != VoterSet([voter(1)])
    assert without != (voter(1),)
    assert without.adding(voter(2)) == both


def test_a_truncation_brings_the_previous_set_back() -> None:
    """Goal: effective when appended, reverted when cut. Method: add two sets, cut one."""
    history = VoterHistory()
    history.add(-1, VoterSet([voter(1)]))
    history.add(5, VoterSet([voter(1), voter(2)]))
    assert history.latest.ids == (1, 2)
    assert history.at(5).ids == (1,)
    assert not history.truncate_to(6)
    assert history.truncate_to(5)
    assert history.latest.ids == (1,)
    assert history.latest_offset == -1


def test_without_a_record_no_voters_are_known() -> None:
    """Method: a new history, and one with its only record cut off."""
    history = VoterHistory()
    assert (history.latest, history.latest_offset) == (NO_VOTERS, -1)
    history.add(0, VoterSet([voter(1)]))
    assert history.truncate_to(0)
    assert (history.latest, history.latest_offset) == (NO_VOTERS, -1)


def test_the_set_before_the_newest_is_known_as_long_as_its_record_is() -> None:
    history = VoterHistory()
    assert history.before_latest == NO_VOTERS
    for offset, ids in ((3, (1,)), (5, (1, 2)), (7, (1, 2, 3))):
        before = history.latest
        history.add(offset, VoterSet([voter(each) for each in ids]))
        assert history.before_latest == before
        assert history.latest_offset == offset


def test_a_replica_is_known_by_any_set_that_is_remembered() -> None:
    """Goal: a removed voter can still be reached and recognised while its record may revert."""
    history = VoterHistory.of(
        [VotersAt(-1, (voter(1), voter(2))), VotersAt(5, (voter(1),), (key(2),))]
    )
    assert history.latest.removed == (key(2),)
    assert history.knows(key(2))
    assert not history.knows(key(3))
    assert history.endpoints_of(2) == voter(2).endpoints
    assert history.endpoints_of(3) == ()


def test_what_no_log_can_revert_to_is_forgotten() -> None:
    """Goal: the history follows the log start. Method: trim between and above two sets."""
    history = VoterHistory()
    history.add(-1, VoterSet([voter(1)]))
    history.add(5, VoterSet([voter(1), voter(2)]))
    history.add(9, VoterSet([voter(2)]))
    history.forget_below(6)
    assert (history.at(5).ids, history.at(6).ids, history.latest.ids) == ((), (1, 2), (2,))
    history = VoterHistory()
    history.add(-1, VoterSet([voter(1)]))
    history.add(5, VoterSet([voter(1), voter(2)]))
    history.forget_below(5)
    assert history.at(5).ids == (1,)
    history.forget_below(6)
    assert history.at(5).ids == ()
    assert history.latest.ids == (1, 2)


def test_sets_must_come_at_rising_offsets() -> None:
    """Goal: one set per offset. Method: add at the same offset twice."""
    history = VoterHistory()
    history.add(5, VoterSet([voter(1)]))
    with pytest.raises(ValueError, match="do not follow"):
        history.add(5, VoterSet([voter(2)]))


def test_the_incarnation_of_the_log_stays_with_each_change() -> None:
    begun = LogIncarnation(1, b"i" * 16, ZERO_UUID, OffsetAndEpoch(3, 2), b"r" * 32)
    voters = VoterSet([voter(1)], [key(5)], begun)
    changed = (voters.adding(voter(2)), voters.removing(key(1)), voters.updating(voter(1)))
    assert {each.incarnation for each in changed} == {begun}
    assert voters != VoterSet([voter(1)], [key(5)])
    history = VoterHistory.of([VotersAt(4, voters.voters, voters.removed, begun)])
    assert history.latest == voters
