"""What is moved into huge pages: whole pages of dense memory of our own, up to a bound."""

from __future__ import annotations

from quorate.server.huge_pages import collapse_all, dense_ranges, move_to_huge_pages

SIZE = 0x200000

SMAPS = """\
557000000000-557000500000 rw-p 00000000 00:00 0                          [heap]
Size:               5120 kB
Rss:                5000 kB
VmFlags: rd wr mr mw me ac
7f0000000000-7f0000800000 rw-p 00000000 00:00 0
Rss:                  40 kB
7f0001000000-7f0001400000 rw-p 00000000 00:00 0
Rss:                4096 kB
7f0002000000-7f0002400000 r-xp 00000000 08:01 77                         /usr/lib/libc.so.6
Rss:                4096 kB
7f0003000000-7f0003400000 rw-p 00000000 08:01 77                         /usr/lib/libc.so.6
Rss:                4096 kB
7f0004000000-7f0004400000 rw-p 00000000 00:00 0                          [stack]
Rss:                4096 kB
7f0005000000-7f0005400000 rw-s 00000000 00:01 9                          /dev/zero (deleted)
Rss:                4096 kB
"""


def test_only_dense_anonymous_memory_of_its_own_counts() -> None:
    """A thread's empty stack, code, a file's data and shared memory are left alone."""
    assert list(dense_ranges(SMAPS.splitlines())) == [
        range(0x557000000000, 0x557000500000),
        range(0x7F0001000000, 0x7F0001400000),
    ]


def test_only_pages_that_lie_wholly_inside_are_asked_for() -> None:
    """The ends of an unaligned mapping are part of huge pages of other data."""
    asked: list[tuple[int, int]] = []

    def collapse(address: int, size: int) -> bool:
        asked.append((address, size))
        return True

    ranges = [range(SIZE - 0x1000, 3 * SIZE + 0x1000), range(4 * SIZE + 1, 5 * SIZE)]
    assert collapse_all(ranges, SIZE, 10 * SIZE, collapse) == 2 * SIZE
    assert asked == [(SIZE, SIZE), (2 * SIZE, SIZE)]


def test_no_more_than_the_bound_is_moved() -> None:
    """A large image must not hold up a node that has just begun to serve."""
    assert collapse_all([range(9 * SIZE)], SIZE, 3 * SIZE + 1, lambda *_: True) == 3 * SIZE


def test_what_the_kernel_refuses_is_not_counted() -> None:
    """It may refuse one page and take the next."""
    taken = iter((False, True, False, True))
    assert collapse_all([range(4 * SIZE)], SIZE, 9 * SIZE, lambda *_: next(taken)) == 2 * SIZE


def test_who_is_refused_three_times_asks_no_more() -> None:
    """Each look for room that there is not costs the kernel more than the one before."""
    asked = []
    assert collapse_all([range(9 * SIZE)], SIZE, 99 * SIZE, lambda *at: bool(asked.append(at))) == 0
    assert len(asked) == 3


def test_asking_the_running_kernel_changes_no_content() -> None:
    """On every system the call returns, and the memory keeps its content."""
    kept = [bytes([number % 251]) * 4096 for number in range(4096)]
    assert move_to_huge_pages() >= 0
    assert all(each == bytes([number % 251]) * 4096 for number, each in enumerate(kept))
