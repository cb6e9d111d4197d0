"""Which history each voter's digests speak for: every rule at its limits.

The two logs of these tests differ behind offset 20; what is in question ends at 40.
"""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.core.state.digest_tally import NOTHING, UNKNOWN, Count, Difference, Held
from quorum.types import DigestAt


def at(offset: int, digest: bytes) -> DigestAt:
    return DigestAt(offset, digest)


COMMON = at(20, b"n")
OWN = Held(at(25, b"a"), at(35, b"c"))
THEIRS = Held(at(25, b"b"), at(36, b"d"))
BETWEEN = Difference(OWN, THEIRS, common_end=20, end_offset=40)


@pytest.mark.parametrize(
    ("common_end", "own_near", "their_near", "first"),
    [
        (20, 25, 25, 21),
        (0, 25, 25, 1),
        # What is common is not known: whatever lies at the first answers is not.
        (-1, 25, 30, 25),
        (-1, 30, 25, 25),
    ],
)
def test_a_voter_is_asked_again_until_it_has_something_behind_the_common_part(
    common_end: int, own_near: int, their_near: int, first: int
) -> None:
    between = Difference(
        Held(at(own_near, b"a"), NOTHING), Held(at(their_near, b"b"), NOTHING), common_end, 40
    )
    for offset, is_beyond in ((first - 1, False), (first, True)):
        assert between.is_beyond(Held(at(offset, b"x"), NOTHING)) == is_beyond
        assert between.is_beyond(Held(NOTHING, at(offset, b"x"))) == is_beyond
    assert not between.is_beyond(UNKNOWN)


@pytest.mark.parametrize(
    ("side", "held", "holds"),
    [
        (OWN, OWN, True),
        (OWN, Held(OWN.near, NOTHING), True),
        (OWN, Held(OWN.near, at(35, b"x")), True),
        (OWN, Held(at(25, b"x"), OWN.end), False),
        (OWN, Held(at(24, b"a"), OWN.end), False),
        # Without an answer at the first offset, that at the end decides.
        (OWN, Held(NOTHING, OWN.end), True),
        (OWN, Held(NOTHING, at(35, b"x")), False),
        (OWN, Held(NOTHING, at(34, b"c")), False),
        (OWN, UNKNOWN, False),
        # This side's first answer lies in the common part, so it says nothing.
        (Held(COMMON, OWN.end), Held(COMMON, OWN.end), True),
        (Held(COMMON, OWN.end), Held(at(19, b"m"), OWN.end), True),
        (Held(COMMON, OWN.end), Held(COMMON, at(35, b"x")), False),
        (Held(at(21, b"n"), OWN.end), Held(at(21, b"n"), at(35, b"x")), True),
        # This side has only the common part.
        (Held(COMMON, COMMON), Held(COMMON, COMMON), False),
        (Held(COMMON, at(21, b"n")), Held(COMMON, at(21, b"n")), True),
    ],
)
def test_a_digest_behind_the_common_part_decides_whose_history_a_voter_holds(
    side: Held, held: Held, holds: bool
) -> None:
    assert BETWEEN.holds(held, side) == holds


def test_two_that_answered_nothing_hold_no_history_together() -> None:
    """Not even if nothing is known to be common."""
    between = Difference(UNKNOWN, OWN, common_end=-1, end_offset=40)
    assert not between.holds(UNKNOWN, UNKNOWN)


@pytest.mark.parametrize(
    ("held", "is_undecided"),
    [
        (Held(COMMON, at(30, b"x")), True),
        (Held(COMMON, at(39, b"x")), True),
        (Held(COMMON, at(40, b"x")), False),
        (Held(at(21, b"n"), at(30, b"x")), False),
        (Held(COMMON, NOTHING), False),
        (Held(NOTHING, at(35, b"x")), True),
        (Held(NOTHING, OWN.end), False),
        (Held(NOTHING, THEIRS.end), False),
        (UNKNOWN, False),
    ],
)
def test_a_voter_that_lags_is_undecided(held: Held, is_undecided: bool) -> None:
    assert BETWEEN.is_undecided(held) == is_undecided


@pytest.mark.parametrize(
    ("voters", "count"),
    [
        ((), Count()),
        ((OWN, OWN, THEIRS), Count(own=2, theirs=1)),
        ((THEIRS, OWN, THEIRS), Count(own=1, theirs=2)),
        # Nothing is known of one, one has only the common part, and one is undecided.
        ((UNKNOWN, Held(COMMON, NOTHING), Held(COMMON, at(30, b"x")), OWN), Count(own=1)),
        # Those with a third history agree by the first answer behind the common part.
        ((Held(at(25, b"x"), at(40, b"x")), Held(at(25, b"x"), at(40, b"y"))), Count(others=2)),
        ((Held(at(25, b"x"), at(40, b"x")), Held(at(25, b"y"), at(40, b"x"))), Count(others=1)),
        ((Held(COMMON, at(40, b"x")), Held(COMMON, at(40, b"y"))), Count(others=1)),
        ((Held(COMMON, at(40, b"x")), Held(at(19, b"m"), at(40, b"x"))), Count(others=2)),
    ],
)
def test_voters_are_counted_by_the_history_that_they_hold(
    voters: tuple[Held, ...], count: Count
) -> None:
    assert BETWEEN.count(voters) == count
    assert BETWEEN.count(reversed(voters)) == count


def test_both_sides_are_counted_by_the_same_answers() -> None:
    """Method: the sides change places."""
    other_way = replace(BETWEEN, own=THEIRS, theirs=OWN)
    assert other_way.count((OWN, OWN, THEIRS)) == Count(own=1, theirs=2)
