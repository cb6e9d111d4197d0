"""Voter sets and their history by offset."""

from __future__ import annotations

import pytest

from quorum.core.voters.voter_set import VoterHistory, VoterSet
from quorum.types import ZERO_UUID, ReplicaKey
from tests.support.core_disk import key, voter


def test_membership_is_by_id_and_disk() -> None:
    """Goal: a re-formatted voter is not the voter. Method: ask with three directories."""
    voters = VoterSet([voter(2), voter(1)])
    assert voters.ids == (1, 2)
    assert voters.contains(key(1))
    assert voters.contains(ReplicaKey(1, ZERO_UUID))
    assert not voters.contains(ReplicaKey(1, b"another disk 16B"))
    assert not voters.contains(key(3))


@pytest.mark.parametrize("ids", [(1, 1), (-1, 2)])
def test_a_set_with_senseless_ids_is_refused(ids: tuple[int, ...]) -> None:
    """Goal: no quorum over nonsense. Method: a double and a negative id."""
    with pytest.raises(ValueError, match=r"twice|negative"):
        VoterSet([voter(each) for each in ids])


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


def test_what_no_log_can_revert_to_is_forgotten() -> None:
    """Goal: the history follows the log start. Method: trim between and above two sets."""
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
