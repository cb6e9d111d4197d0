"""The voter set, with tombstones and the log's incarnation, and its history by record offset.

A voter set is in force from the append of its record on, committed or not, so a truncation may
restore the previous one. Offset -1 marks a set that came with the bootstrap checkpoint and is not
in the log.

See: KIP-853; Raft dissertation section 4.1.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from quorum.core.messages.received_records import VotersAt
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.types import Endpoint, NodeId, ReplicaKey, Voter


class VoterSet:
    """An immutable set of voters, ascending by id, and the tombstones of removed ones.

    A tombstone names id and directory id of a former voter. Tombstones and the incarnation of the
    log are part of the set, so that all come into force, revert and travel through checkpoints
    together. Sets compare by content.
    """

    __slots__ = ("_by_id", "ids", "incarnation", "removed", "voters")

    def __init__(
        self,
        voters: Iterable[Voter],
        removed: Iterable[ReplicaKey] = (),
        incarnation: LogIncarnation = FIRST_INCARNATION,
    ) -> None:
        """Build a set.

        Raises:
            ValueError: An id is negative or appears twice.
        """
        self.incarnation = incarnation
        self.removed: tuple[ReplicaKey, ...] = tuple(
            sorted(set(removed), key=lambda key: (key.id, key.directory_id))
        )
        self.voters: tuple[Voter, ...] = tuple(sorted(voters, key=lambda voter: voter.key.id))
        self._by_id = {voter.key.id: voter for voter in self.voters}
        self.ids: tuple[NodeId, ...] = tuple(self._by_id)
        if len(self._by_id) != len(self.voters):
            raise ValueError("a voter id appears twice")
        if self.ids and self.ids[0] < 0:
            raise ValueError(f"voter id {self.ids[0]} is negative")

    def __len__(self) -> int:
        return len(self.voters)

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, VoterSet)
            and self.voters == other.voters
            and self.removed == other.removed
            and self.incarnation == other.incarnation
        )

    def __hash__(self) -> int:
        return hash((self.voters, self.removed, self.incarnation))

    def get(self, node_id: NodeId) -> Voter | None:
        """Return the voter with that id, whatever its directory."""
        return self._by_id.get(node_id)

    def contains(self, key: ReplicaKey) -> bool:
        """Whether ``key`` is a voter; an unknown directory on either side matches any."""
        voter = self._by_id.get(key.id)
        return voter is not None and voter.key.matches(key)

    def others(self, me: ReplicaKey) -> tuple[Voter, ...]:
        """Return every voter but ``me``, ascending by id."""
        return tuple(voter for voter in self.voters if not voter.key.matches(me))

    def endpoints_of(self, node_id: NodeId) -> tuple[Endpoint, ...]:
        """Return that voter's endpoints; empty if it is not a voter."""
        voter = self._by_id.get(node_id)
        return voter.endpoints if voter is not None else ()

    def adding(self, voter: Voter) -> VoterSet:
        """Return this set with ``voter`` added and its tombstone, if any, lifted.

        Raises:
            ValueError: Its id is that of a voter already.
        """
        removed = (key for key in self.removed if key != voter.key)
        return VoterSet((*self.voters, voter), removed, self.incarnation)

    def removing(self, key: ReplicaKey) -> VoterSet:
        """Return this set without ``key``, which becomes a tombstone."""
        kept = (voter for voter in self.voters if voter.key != key)
        return VoterSet(kept, (*self.removed, key), self.incarnation)

    def updating(self, voter: Voter) -> VoterSet:
        """Return this set with ``voter`` in place of the entry of its id, whose tagged fields stay.

        Raises:
            KeyError: There is no entry of its id.
        """
        voter = replace(voter, tagged=self._by_id[voter.key.id].tagged)
        kept = (each for each in self.voters if each.key.id != voter.key.id)
        return VoterSet((*kept, voter), self.removed, self.incarnation)


NO_VOTERS = VoterSet(())


class VoterHistory:
    """Voter sets by the offset of their record, ascending; the last one is in force."""

    __slots__ = ("_offsets", "_sets", "latest", "latest_offset")

    def __init__(self) -> None:
        self._offsets: list[int] = []
        self._sets: list[VoterSet] = []
        # Kept beside the lists, because each message needs them several times.
        self.latest = NO_VOTERS
        """The set in force; empty if unknown."""
        self.latest_offset = -1
        """Offset of the record of ``latest``; -1 if it is not in the log."""

    @classmethod
    def of(cls, records: Iterable[VotersAt]) -> VoterHistory:
        """Return the history of voters records at rising offsets.

        Raises:
            ValueError: Offsets do not rise, or a record is not a voter set.
        """
        history = cls()
        for each in records:
            history.add(each.offset, VoterSet(each.voters, each.removed, each.incarnation))
        return history

    @property
    def before_latest(self) -> VoterSet:
        """The set that would be in force without the last record; empty if unknown."""
        return self._sets[-2] if len(self._sets) > 1 else NO_VOTERS

    def add(self, offset: int, voters: VoterSet) -> None:
        """Put a set in force.

        Raises:
            ValueError: ``offset`` is not above the last one.
        """
        if self._offsets and offset <= self._offsets[-1]:
            raise ValueError(f"voters at {offset} do not follow those at {self._offsets[-1]}")
        self._offsets.append(offset)
        self._sets.append(voters)
        self._find_latest()

    def _find_latest(self) -> None:
        self.latest = self._sets[-1] if self._sets else NO_VOTERS
        self.latest_offset = self._offsets[-1] if self._offsets else -1

    def knows(self, key: ReplicaKey) -> bool:
        """Whether ``key`` is a voter of any set in this history."""
        return any(voters.contains(key) for voters in reversed(self._sets))

    def endpoints_of(self, node_id: NodeId) -> tuple[Endpoint, ...]:
        """Return that voter's endpoints in the newest set with it; empty if there is none."""
        for voters in reversed(self._sets):
            endpoints = voters.endpoints_of(node_id)
            if endpoints:
                return endpoints
        return ()

    def at(self, end_offset: int) -> VoterSet:
        """Return the set in force for a log that ends at ``end_offset`` (exclusive)."""
        for offset, voters in zip(reversed(self._offsets), reversed(self._sets), strict=True):
            if offset < end_offset:
                return voters
        return NO_VOTERS

    def truncate_to(self, end_offset: int) -> bool:
        """Drop sets at or above ``end_offset``; return whether the set in force changed."""
        before = self.latest
        while self._offsets and self._offsets[-1] >= end_offset:
            self._offsets.pop()
            self._sets.pop()
        self._find_latest()
        return self.latest != before

    def forget_below(self, start_offset: int) -> None:
        """Drop sets that no log starting at ``start_offset`` or later can revert to."""
        while len(self._offsets) > 1 and self._offsets[1] < start_offset:
            del self._offsets[0]
            del self._sets[0]
