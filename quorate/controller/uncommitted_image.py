"""The leader's groups that are appended but not yet committed, and how they become the image.

The leader replays each group once, when it evaluates it. When the group's end is committed, the
state machine promotes the result; bytes are only replayed for what this leader did not form
itself (older epochs, control batches between groups) and when leadership is lost.

Invariants:
    1. Groups are contiguous with each other but for control batches between them.
    2. Bytes held back are exactly the committed ones above the image's end offset.
"""

from __future__ import annotations

import struct
from collections import deque
from collections.abc import Sequence

from quorate.controller.proposed_group import BatchPlace, Group
from quorum.batch import VerifiedBatches
from statemachine.delta import ImageDelta
from statemachine.machine import StateMachine

_BASE_AND_LENGTH = struct.Struct(">qi")
_LENGTH_OVERHEAD = 12


def position_of(data: bytes, offset: int) -> int:
    """Where the first batch at or above ``offset`` begins in whole, verified batches."""
    position = 0
    while position < len(data):
        base, length = _BASE_AND_LENGTH.unpack_from(data, position)
        if base >= offset:
            break
        position += _LENGTH_OVERHEAD + length
    return position


class UncommittedImage:
    """The image with the leader's uncommitted groups on top of the committed ones."""

    def __init__(self, machine: StateMachine) -> None:
        self._machine = machine
        self.groups: deque[Group] = deque()
        """Groups that are appended and not yet in the image, the oldest first. Read-only."""
        self._held: list[bytes] = []
        self._held_end = 0

    def begin_delta(self, log_end: int, epoch: int) -> ImageDelta:
        """What the next group is evaluated on and replayed into, placed at the log's end.

        Between the last group and the log's end there may be control batches, which change
        nothing but the position.
        """
        if self.groups:
            delta = ImageDelta(self.groups[-1].image)
        else:
            delta = self._machine.speculate()
        if delta.end_offset != log_end:
            delta.skip_batch(BatchPlace(delta.end_offset, log_end, epoch, delta.timestamp_ms))
        return delta

    def push(self, group: Group) -> None:
        """Add a group that is being appended."""
        self.groups.append(group)

    def commit(
        self, data: bytes, end_offset: int, verified: Sequence[VerifiedBatches] = ()
    ) -> list[Group]:
        """Add committed batches that follow the earlier ones; ``verified`` as in ``Listener``.

        Returns:
            The groups that are now in the image; the machine's image has the end offset.

        Raises:
            UnknownRecordError, ReplayError, RecordCodecError: As ``StateMachine.apply``; the
                image ends before the batch in question.
        """
        machine = self._machine
        if not self.groups:
            machine.apply(data, verified)
            return []
        base = self.groups[0].base_offset
        if not self._held and machine.end_offset < base:
            # Older epochs and control batches: what the first group was evaluated on.
            cut = position_of(data, base)
            machine.apply(data[:cut])
            data = data[cut:]
        if data:
            self._held.append(data)
            self._held_end = end_offset
        return self._promote()

    def drop(self, *, is_replayed: bool) -> None:
        """End leadership: replay the committed part of the groups, and forget the rest.

        Raises:
            UnknownRecordError, ReplayError, RecordCodecError: As ``StateMachine.apply``.
        """
        self.groups.clear()
        held, self._held = b"".join(self._held), []
        if held and is_replayed:
            self._machine.apply(held)

    def forget(self) -> None:
        """Replace everything by a checkpoint."""
        self.groups.clear()
        self._held = []

    def _promote(self) -> list[Group]:
        promoted: list[Group] = []
        groups = self.groups
        while groups and groups[0].end_offset <= self._held_end:
            group = groups.popleft()
            if group.must_replay:
                held = b"".join(self._held)
                self._machine.apply(held[: position_of(held, group.end_offset)])
            else:
                self._machine.adopt(group.delta)
            promoted.append(group)
        if promoted:
            self._release(promoted[-1].end_offset)
        return promoted

    def _release(self, end_offset: int) -> None:
        """Keep only the held bytes above ``end_offset``; control batches there are applied."""
        held, self._held = self._held, []
        if self._held_end == end_offset:
            return
        rest = b"".join(held)
        rest = rest[position_of(rest, end_offset) :]
        next_base = self.groups[0].base_offset if self.groups else self._held_end
        if next_base > end_offset:
            gap = position_of(rest, next_base)
            self._machine.apply(rest[:gap])
            rest = rest[gap:]
        if rest:
            self._held.append(rest)
