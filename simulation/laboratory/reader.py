"""A consumer of a random run, and what it may be told.

What it has read is compared with the log of the broker that it asked: nothing is skipped, every
truncation is reported, at the true offset where it is called exact, and none that did not happen.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NoReturn

from quorate.client.batches import LogRecord
from quorate.client.errors import ClientError, LogTruncationError, OffsetOutOfRangeError
from quorate.client.log_consumer import ResetPolicy
from simulation.invariants.violation import Violation
from simulation.laboratory.consumer import PartitionConsumer
from simulation.laboratory.laboratory import Laboratory
from simulation.laboratory.replica import Replica

NAME = "laboratory"


@dataclass
class Counts:
    """What happened in a run: a check that never had a case proves nothing."""

    truncations: int = 0
    inexact: int = 0
    moves: int = 0
    records_read: int = 0
    states: int = 0
    fenced_producers: int = 0
    duplicates: int = 0
    stale_commands: int = 0

    def add(self, other: Counts) -> None:
        """Add the counts of another run."""
        for each in fields(self):
            total = getattr(self, each.name) + getattr(other, each.name)
            setattr(self, each.name, total)


class Reader:
    """A consumer, and epoch and value of what it has read and not reported as lost, by offset."""

    def __init__(
        self, laboratory: Laboratory, topic: str, reset: ResetPolicy, counts: Counts
    ) -> None:
        self.consumer = PartitionConsumer(laboratory, topic, reset=reset)
        self.have: dict[int, tuple[int, str]] = {}
        self.state_end = 0
        """It has what lies below as a state, without the records."""
        self._laboratory = laboratory
        self._topic = topic
        self._counts = counts

    def differences(self, leader: Replica) -> list[int]:
        """Return the offsets of the leader's records that it does not have."""
        log = by_offset(leader)
        return [
            at for at, value in log.items() if at >= self.state_end and self.have.get(at) != value
        ]

    def read(self) -> None:
        """Poll once, and compare what it returns with the log that was asked.

        Raises:
            Violation: Something was lost, skipped, hidden or wrongly reported.
        """
        consumer = self.consumer
        asked = (
            self._laboratory.leader(self._topic)
            if consumer.asks is None
            else self._laboratory.replica(self._topic, consumer.asks)
        )
        before = consumer.position.offset
        try:
            records = consumer.poll()
        except LogTruncationError as error:
            self._take_truncation(asked, error)
            return
        except OffsetOutOfRangeError:
            self._go_to_start(asked)
            return
        except ClientError:
            return
        state = consumer.consumer.state
        if state is not None:
            self._counts.states += 1
            self.have = {}
            self.state_end = state.offset
            return
        moved_to = records[0].offset if records else consumer.position.offset
        if moved_to < before:
            self._counts.moves += 1
            self._check_loss(asked, moved_to, is_exact=False)
            self._forget(moved_to)
        self._take(asked, records)

    def _take(self, asked: Replica | None, records: list[LogRecord]) -> None:
        for each in records:
            self.have[each.offset] = (each.leader_epoch, (each.value or b"").decode())
        self._counts.records_read += len(records)
        if not records or asked is None:
            return
        log = by_offset(asked)
        for at, value in self.have.items():
            if at in log and log[at] != value:
                violate("a truncation was hidden", offset=at, read=value, log=log[at])
        start = max(asked.log_start.offset, self.state_end)
        missing = sorted({*range(start, max(self.have) + 1)} - {*self.have})
        if missing:
            violate("records were skipped", missing=missing)

    def _take_truncation(self, asked: Replica | None, error: LogTruncationError) -> None:
        self._counts.truncations += 1
        self._counts.inexact += not error.is_exact
        at = error.divergent_offset
        if error.is_exact:
            self._check_loss(asked, at, is_exact=True)
        else:
            self._check_bound(asked, at)
        start = 0 if asked is None else asked.log_start.offset
        if not error.is_exact or at < start or (at > 0 and error.divergent_epoch < 0):
            # Behind a bound, records below it may be others than those that were read.
            self._go_to_start(asked)
            return
        self._forget(at)
        self.consumer.consumer.seek(at, error.divergent_epoch)

    def _check_loss(self, asked: Replica | None, at: int, *, is_exact: bool) -> None:
        """Check that the log differs from what was read at ``at``, and not below if it is exact."""
        if asked is None:
            violate("a truncation without a leader", offset=at)
        start = asked.log_start.offset
        differs = self._lost(asked)
        # Below the log start nothing can be compared any more.
        is_comparable = at >= max(start, self.state_end) and (is_exact or at > start)
        if not differs and is_comparable:
            violate("a false alarm", offset=at, read=sorted(self.have))
        first = min(differs, default=at)
        kept = [offset for offset in self.have if max(at, start) <= offset < first]
        if is_exact and kept:
            violate("the truncation is elsewhere", reported=at, true=differs[0])
        if differs and differs[0] < at:
            violate("lost records below the truncation", reported=at, true=differs[0])

    def _check_bound(self, asked: Replica | None, at: int) -> None:
        """Check that what was read differs from the log at ``at`` or below, where that is seen."""
        if asked is None:
            violate("a truncation without a leader", offset=at)
        differs = self._lost(asked)
        start = max(asked.log_start.offset, self.state_end)
        if at > start and not differs:
            violate("a false alarm", offset=at, read=sorted(self.have))
        if differs and differs[0] > max(at, start):
            violate("a bound is too low", reported=at, true=differs[0])

    def _lost(self, asked: Replica) -> list[int]:
        """Return the offsets of records that were read and that the log has no more, ascending."""
        log, start = by_offset(asked), asked.log_start.offset
        return [
            offset
            for offset, value in sorted(self.have.items())
            if offset >= start and log.get(offset) != value
        ]

    def _forget(self, from_offset: int) -> None:
        self.have = {at: value for at, value in self.have.items() if at < from_offset}
        self.state_end = min(self.state_end, from_offset)

    def _go_to_start(self, asked: Replica | None) -> None:
        """Begin anew, as a program does that cannot know what it has missed."""
        if asked is not None:
            self.have, self.state_end = {}, asked.log_start.offset
            self.consumer.consumer.seek(asked.log_start.offset)


def by_offset(replica: Replica) -> dict[int, tuple[int, str]]:
    """Return epoch and value of every record of a replica."""
    return {at: (epoch, value) for at, epoch, value in replica.log.records()}


def violate(what: str, **facts: object) -> NoReturn:
    """Report that a guarantee does not hold.

    Raises:
        Violation: Always.
    """
    raise Violation(NAME, what, **facts)
