"""The failures that a quorum tolerates: majorities, who may fail next, and the effect of a change.

Pure. A voter counts as *able* when it can acknowledge now: the leader, and each voter that has
fetched recently and was caught up. A voter in an unknown state counts as unable: right after an
election the leader has no contact with some voters, and a wrong guess could cost the majority.

See: Raft dissertation section 4 (why one voter at a time), KIP-853.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from quorum.config import QuorumConfig

PATIENCE_MS = QuorumConfig().check_quorum_ms
"""With default settings; a leader says what its own are (``DescribeQuorum.check_quorum_ms``)."""


class Condition(Enum):
    """How a replica is, as its leader sees it."""

    LEADER = "leader"
    LEVEL = "level"
    LAGGING = "lagging"
    SILENT = "silent"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Replica:
    """One replica. Times are ages in milliseconds, -1 for never or not known."""

    id: int
    directory_id: bytes = b""
    lag: int = -1
    """Records that it has not acknowledged; -1 unknown."""
    silent_ms: int = -1
    behind_ms: int = -1
    """How long ago it was level with the leader."""
    is_leader: bool = False
    patience_ms: int = PATIENCE_MS
    """A voter that has not fetched for longer counts as unreachable, one that has not been level
    for longer as lagging. The leader itself waits this long for a majority before it resigns."""
    probed_ms: int = -1
    """How long ago the voters were probed; a voter that has not fetched since counts as
    unreachable as well. -1: there was no probe."""

    @property
    def condition(self) -> Condition:
        """Whether it can be counted on."""
        if self.is_leader:
            return Condition.LEADER
        if self.silent_ms < 0 or self.lag < 0:
            return Condition.UNKNOWN
        if self.silent_ms > self.patience_ms or 0 <= self.probed_ms < self.silent_ms:
            return Condition.SILENT
        if self.lag > 0 and not 0 <= self.behind_ms <= self.patience_ms:
            return Condition.LAGGING
        return Condition.LEVEL

    @property
    def is_able(self) -> bool:
        """Whether it can acknowledge what is written now."""
        return self.condition in (Condition.LEADER, Condition.LEVEL)


@dataclass(frozen=True, slots=True)
class QuorumStatus:
    """A voter set in numbers."""

    voters: tuple[Replica, ...]

    @property
    def majority(self) -> int:
        """Acknowledgements that commit; votes that elect."""
        return len(self.voters) // 2 + 1

    @property
    def tolerated(self) -> int:
        """Failures that the set bears when all its voters are well."""
        return len(self.voters) - self.majority

    @property
    def able(self) -> tuple[Replica, ...]:
        """Who can acknowledge now."""
        return tuple(each for each in self.voters if each.is_able)

    @property
    def margin(self) -> int:
        """Further failures that it bears now; below 0 nothing is committed any more."""
        return len(self.able) - self.majority

    @property
    def may_fail_next(self) -> tuple[int, ...]:
        """Voters of which any one may fail now. A voter that is not able does not count."""
        if self.margin < 0:
            return ()
        return tuple(each.id for each in self.voters if self.margin > 0 or not each.is_able)

    @property
    def unable(self) -> tuple[Replica, ...]:
        """Who cannot be counted on."""
        return tuple(each for each in self.voters if not each.is_able)

    def find(self, node_id: int) -> Replica | None:
        """The voter of that number."""
        return next((each for each in self.voters if each.id == node_id), None)

    def with_voter(self, voter: Replica) -> QuorumStatus:
        """The set with one more; the set itself when that number votes already."""
        if self.find(voter.id) is not None:
            return self
        return QuorumStatus(tuple(sorted((*self.voters, voter), key=lambda each: each.id)))

    def without(self, node_id: int) -> QuorumStatus:
        """The set with one fewer."""
        return QuorumStatus(tuple(each for each in self.voters if each.id != node_id))

    def margin_without(self, node_id: int) -> int:
        """The margin while that node is stopped; it stays a voter."""
        voter = self.find(node_id)
        return self.margin - (1 if voter is not None and voter.is_able else 0)


def objections_to_adding(before: QuorumStatus, voter: Replica) -> list[str]:
    """Why this replica should not become a voter now; empty when it may."""
    if before.find(voter.id) is not None:
        # Its leader lists it among the voters, so nothing that an observer is asked applies.
        return [f"node {voter.id} is a voter already"]
    found = []
    if voter.condition is Condition.UNKNOWN:
        found.append(f"node {voter.id} does not fetch from the leader, or has not yet")
    elif not voter.is_able:
        found.append(f"node {voter.id} is {_how(voter)}: it would count and not acknowledge")
    after = before.with_voter(voter)
    if after.margin < 0:
        found.append(_lost(after))
    return found


def objections_to_removing(before: QuorumStatus, node_id: int) -> list[str]:
    """Why this voter should not be removed now; empty when it may."""
    if before.find(node_id) is None:
        return [f"node {node_id} is not a voter"]
    after = before.without(node_id)
    if not after.voters:
        return [f"node {node_id} is the last voter"]
    return [_lost(after)] if after.margin < 0 else []


def objections_to_stopping(now: QuorumStatus, node_id: int, spare: int = 0) -> list[str]:
    """Why this node should not be stopped, if ``spare`` more are to be able to fail then.

    The arithmetic first, then one sentence for each voter that cannot be counted on.
    """
    left = now.margin_without(node_id)
    if left >= spare:
        return []
    able = now.majority + left
    return [
        f"{able} of {len(now.voters)} voters would be left that can acknowledge, "
        f"{now.majority} are needed" + (f" and {spare} wanted to spare" if spare else ""),
        *(f"node {each.id} is {_how(each)}" for each in now.unable),
    ]


def warnings_about(after: QuorumStatus) -> list[str]:
    """What is worth knowing about a set that works."""
    found = []
    if 0 <= after.margin < after.tolerated:
        found.append(f"{after.margin} of {after.tolerated} tolerated failures are left"
                     + _named(after.unable))  # fmt: skip
    if len(after.voters) % 2 == 0:
        found.append(
            f"{len(after.voters)} voters bear no more failures than {len(after.voters) - 1}"
        )
    return found


def _lost(after: QuorumStatus) -> str:
    return (
        f"{len(after.able)} of {len(after.voters)} voters could acknowledge, "
        f"{after.majority} would be needed" + _named(after.unable)
    )


def _named(unable: Sequence[Replica]) -> str:
    return ": " + ", ".join(f"node {each.id} is {_how(each)}" for each in unable) if unable else ""


def _how(replica: Replica) -> str:
    match replica.condition:
        case Condition.SILENT:
            return f"silent for {replica.silent_ms / 1000:.1f} s"
        case Condition.LAGGING:
            return f"{replica.lag} records behind"
        case _:
            return str(replica.condition.value)
