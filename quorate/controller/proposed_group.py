"""A group between its proposal and its commit: the image after it, and the commands it answers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import NamedTuple

from quorate.controller.requests import NO_PRODUCER, PendingCommand
from statemachine.delta import ImageDelta
from statemachine.image import MetadataImage


class BatchPlace(NamedTuple):
    """What replay asks of a batch header, known before the batch has one."""

    base_offset: int
    end_offset: int
    epoch: int
    max_timestamp: int
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER
    base_sequence: int = NO_PRODUCER


@dataclass(slots=True)
class Group:
    """A proposed group, until it is committed or its leadership is lost."""

    base_offset: int
    end_offset: int
    delta: ImageDelta
    image: MetadataImage
    answers: list[PendingCommand]
    must_replay: bool = False
    """It ends a transaction that the state machine holds open: its bytes are replayed when
    they are committed, because the two states share nothing."""

    def survivors(self, end_offset: int) -> Iterator[tuple[PendingCommand, bool]]:
        """Yield each answer, and whether it is final if leadership is lost at this committed end.

        A refusal or a no-op at the committed end may not be true any more, because a successor may
        have continued from there. Only a committed batch of this group proves that it was in time:
        it was appended after the command arrived, and no other leader's write is below it.
        """
        is_proven = end_offset > self.base_offset
        for pending in self.answers:
            is_covered = pending.rests_on <= end_offset
            yield pending, is_covered and (is_proven or pending.is_repeat)
