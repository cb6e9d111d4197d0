"""How voters' digests are counted when two logs differ: each answer alone, then several."""

from __future__ import annotations

from dataclasses import astuple

import pytest

from quorum.core.state.digest_tally import NOTHING, UNKNOWN, Difference, Held
from quorum.types import DigestAt

FLOOR = 10
"""Both sides are equal up to here."""
END = 40
"""The end of what is in question."""
COMMON = DigestAt(FLOOR, b"common")
OURS = Held(DigestAt(15, b"ours"), DigestAt(END, b"our end"))
THEIRS = Held(DigestAt(15, b"theirs"), DigestAt(END, b"their end"))


def at(offset: int, value: str = "x") -> DigestAt:
    return DigestAt(offset, value.encode())


def counted(
    *held: Held,
    own: Held = OURS,
    theirs: Held = THEIRS,
    common_end: int = FLOOR,
) -> tuple[int, int, int]:
    """Voters with the own history, with theirs, and the most that agree on another."""
    found = astuple(Difference(own, theirs, common_end, END).count(held))
    return found[0], found[1], found[2]


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        (OURS, (1, 0, 0)),
        (THEIRS, (0, 1, 0)),
        # The first answer decides where it lies behind the common part.
        (Held(OURS.near, at(20)), (1, 0, 0)),
        (Held(THEIRS.near, OURS.end), (0, 1, 0)),
        (Held(at(11), OURS.end), (0, 0, 1)),
        # Without a first answer the second one does.
        (Held(NOTHING, OURS.end), (1, 0, 0)),
        (Held(NOTHING, THEIRS.end), (0, 1, 0)),
        (Held(NOTHING, at(END)), (0, 0, 1)),
        # Nothing, or only the common part: a replica that lags has decided nothing.
        (UNKNOWN, (0, 0, 0)),
        (Held(COMMON, COMMON), (0, 0, 0)),
        (Held(COMMON, NOTHING), (0, 0, 0)),
        (Held(at(FLOOR - 1), at(FLOOR)), (0, 0, 0)),
        # Too short to tell: behind the common part, before the end, at another boundary.
        (Held(COMMON, at(FLOOR + 1)), (0, 0, 0)),
        (Held(COMMON, at(END - 1)), (0, 0, 0)),
        (Held(NOTHING, at(END - 1)), (0, 0, 0)),
        (Held(COMMON, at(END)), (0, 0, 1)),
        (Held(at(FLOOR + 1), at(END - 1)), (0, 0, 1)),
        # A boundary without a digest is another history, however short.
        (Held(COMMON, DigestAt(END - 1, b"")), (0, 0, 1)),
    ],
)
def test_one_voters_answer(held: Held, expected: tuple[int, int, int]) -> None:
    assert counted(held) == expected


@pytest.mark.parametrize(
    ("common_end", "held", "expected"),
    [
        (-1, Held(at(14), at(14)), (0, 0, 0)),
        (-1, Held(at(15), at(15)), (0, 0, 1)),
        (0, Held(at(5), at(5)), (0, 0, 1)),
        (0, Held(at(0), at(0)), (0, 0, 0)),
    ],
)
def test_without_a_known_common_part_the_first_difference_bounds_it(
    common_end: int, held: Held, expected: tuple[int, int, int]
) -> None:
    theirs = Held(at(20, "theirs"), THEIRS.end)
    assert counted(held, theirs=theirs, common_end=common_end) == expected
    assert counted(held, own=theirs, theirs=OURS, common_end=common_end) == expected


def test_a_side_with_no_boundary_near_the_difference_is_known_by_its_end() -> None:
    own = Held(COMMON, OURS.end)
    assert counted(Held(COMMON, OURS.end), own=own) == (1, 0, 0)
    assert counted(Held(at(11), OURS.end), own=own) == (1, 0, 0)
    assert counted(Held(COMMON, THEIRS.end), own=own) == (0, 0, 1)


def test_a_side_that_ends_early_has_its_history_all_the_same() -> None:
    """Goal: a replica with a shorter side's end counts. Method: ends below the end in question."""
    short = Held(COMMON, at(END - 5, "short"))
    assert counted(short, own=short) == (1, 0, 0)
    assert counted(short, theirs=short) == (0, 1, 0)


def test_a_side_that_ends_with_the_common_part_has_no_history_to_share() -> None:
    own = Held(COMMON, COMMON)
    assert counted(Held(at(11), COMMON), own=own) == (0, 0, 1)


def test_an_answer_without_a_digest_is_no_ones() -> None:
    """Method: a side whose end has no digest either."""
    own = Held(COMMON, DigestAt(END, b""))
    assert counted(Held(COMMON, DigestAt(END, b"")), own=own) == (0, 0, 1)


@pytest.mark.parametrize(
    ("held", "expected"),
    [
        ([OURS, OURS, THEIRS], (2, 1, 0)),
        ([OURS, THEIRS, THEIRS, THEIRS], (1, 3, 0)),
        # Others agree by their first answer, where that lies behind the common part …
        ([Held(at(11), at(20)), Held(at(11), at(30)), Held(at(12), at(END))], (0, 0, 2)),
        # … else by their second one.
        ([Held(COMMON, at(END)), Held(at(9), at(END)), Held(COMMON, at(END, "y"))], (0, 0, 2)),
        ([Held(COMMON, at(END)), Held(COMMON, at(END, "y"))], (0, 0, 1)),
        # No response ends the count.
        ([UNKNOWN, Held(COMMON, at(20)), OURS, THEIRS, Held(at(11), at(11))], (1, 1, 1)),
    ],
)
def test_several_voters(held: list[Held], expected: tuple[int, int, int]) -> None:
    assert counted(*held) == expected
