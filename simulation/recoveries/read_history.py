"""What one reader has read, compared with the history that survived.

It is kept batch by batch, with the number of the recoveries before it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from quorum.batch import scan_batches
from quorum.types import ZERO_UUID, Uuid
from simulation.invariants.violation import Violation

SKIPPED = "recovery-skip"
"""A record of the surviving history was not read, or one that is not in it was kept."""
INEXACT = "recovery-truncation"
"""A truncation was reported at another offset than the first one that differs."""
FALSE_ALARM = "recovery-false-alarm"
"""A truncation was reported although nothing that was read is gone."""


class Batch(NamedTuple):
    """One batch that was read."""

    base: int
    end: int
    data: bytes
    recoveries: int = 0
    """Recoveries before it was read."""


def batches_in(data: bytes, recoveries: int = 0) -> list[Batch]:
    """Return the batches in these bytes."""
    found = scan_batches(data) if data else ()
    return [
        Batch(
            each.base_offset, each.end_offset, data[each.position : each.end_position], recoveries
        )
        for each in found
    ]


class ReadHistory:
    """The batches that one reader has, and the incarnations that it may have met."""

    def __init__(self, reader: str) -> None:
        self.reader = reader
        """What it is, for violations."""
        self.read: list[Batch] = []
        self._kept: Mapping[int, bytes] = {}
        """The log with which the present incarnation began, by base offset."""
        self._incarnations = [ZERO_UUID]
        """One for each recovery, and the first."""
        self.met = 0
        """The newest incarnation that an answer named, also to an earlier process, as a place in
        that list.
        """

    @property
    def recoveries(self) -> int:
        """The present incarnation, as a place in the list."""
        return len(self._incarnations) - 1

    @property
    def end(self) -> int:
        """Everything below was read."""
        return self.read[-1].end if self.read else 0

    def begin(self, incarnation: Uuid, kept: Mapping[int, bytes]) -> None:
        """Note a recovery, and the log that it went on with."""
        self._kept = kept
        self._incarnations.append(incarnation)

    def place(self, incarnation: Uuid) -> int:
        """Return which incarnation it is."""
        return self._incarnations.index(incarnation or ZERO_UUID)

    def meet(self, place: int) -> None:
        """Note which incarnation an answer named."""
        self.met = max(self.met, place)

    def first_lost(self) -> int:
        """Return the first offset read that is not in the surviving history; -1 for none."""
        for each in self.read:
            if each.recoveries < self.recoveries and self._kept.get(each.base) != each.data:
                return each.base
        return -1

    def truncate(self, offset: int, read_to: int, *, is_exact: bool = True) -> None:
        """Drop what a reported truncation says is lost.

        Raises:
            Violation: Nothing is lost, or the first lost record is elsewhere.
        """
        lost = self.first_lost()
        if lost < 0:
            raise Violation(
                FALSE_ALARM, "nothing that was read is gone", reported=offset, reader=self.reader
            )
        if offset != lost or not is_exact:
            raise Violation(
                INEXACT, "the truncation was reported elsewhere", reported=offset, lost=lost,
                read_to=read_to, is_exact=is_exact, reader=self.reader,
            )  # fmt: skip
        self.read = [each for each in self.read if each.base < offset]

    def take(self, taken: list[Batch], after: int, incarnation: int) -> None:
        """Keep batches that a node of an incarnation served, up to ``after``.

        Raises:
            Violation: They do not follow what was read, the reader has met a newer incarnation, or
                it goes on in the present one although something that it has read is lost.
        """
        if incarnation < self.met:
            raise Violation(
                SKIPPED, "records of a former incarnation were taken", at=self.end,
                reader=self.reader,
            )  # fmt: skip
        if not taken or taken[0].base != self.end or taken[-1].end != after:
            raise Violation(
                SKIPPED, "records were skipped", read_to=self.end, goes_on=after,
                reader=self.reader,
            )  # fmt: skip
        # A former voter serves what it has. Its reader cannot know of the recovery yet.
        if incarnation == self.recoveries and self.first_lost() >= 0:
            raise Violation(
                SKIPPED, "a truncation was not reported", lost=self.first_lost(),
                reader=self.reader,
            )  # fmt: skip
        self.read += taken

    def check_end(self, log: bytes) -> None:
        """Require that exactly the surviving history was read.

        Raises:
            Violation: It was not.
        """
        true = [(each.base, each.data) for each in batches_in(log)]
        if [(each.base, each.data) for each in self.read] != true:
            raise Violation(
                SKIPPED, "what was read is not the surviving history", reader=self.reader
            )
