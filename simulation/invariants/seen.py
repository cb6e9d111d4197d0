"""The observed state of one incarnation of a node, and of the start of a read."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, TypeAlias

from quorate.replica.replica import Replica
from quorum.types import ElectionState, NodeId
from simulation.invariants.mirror import LogMirror

CommandKey: TypeAlias = tuple[int, int, int] | None
"""Producer id, epoch and sequence of a command; None where it has none."""


class ReadBegun(NamedTuple):
    """The observed state when a read began."""

    acknowledged_end: int
    """Everything acknowledged until then is below."""
    sent_count: int
    """Number of messages that all nodes had sent."""


def _no_time() -> int:
    return 0


def _is_not_corrupt(_path: Path) -> bool:
    return False


@dataclass(slots=True)
class Seen:
    """One incarnation of one node."""

    id: NodeId
    incarnation: int
    replica: Replica
    written: LogMirror
    """The log with all submitted effects."""
    durable: LogMirror
    """The log with all completed effects."""
    election: ElectionState
    """The completed content of ``quorum-state``."""
    damaged_at: int | None = None
    """End of its durable log when its disk lost records that it may have acknowledged."""
    secured_end: int = 0
    """Its synced durable mark: a loss below it is not taken for a torn tail (ADR 26)."""
    keeps_mark: bool = False
    """Whether only its process ended, not its machine: then the mark covers all flushed records."""
    leading: ElectionState | None = None
    """Election state with which it was last seen to lead lawfully."""
    is_up: bool = True
    now_ms: Callable[[], int] = _no_time
    """Its own monotonic clock."""
    is_corrupt: Callable[[Path], bool] = _is_not_corrupt
    """Whether a file was damaged and has not been read since."""
    ticket: int = 0
    """Of the latest group submitted to its disk."""
    owed_count: int = 0
    """Groups submitted to its disk and not completed."""
    owed_since_ms: int = 0
    """When the disk last completed a group, or got one after being idle."""
    high_watermark: int = 0
    applied_end: int = 0
    epoch: int = 0
    log_end: int = 0
    looked_at: tuple[object, ...] = ()
    """The node state that invariants depend on, as of the last check."""

    def stop(self, *, keeps_mark: bool) -> None:
        """Note that its process has ended; ``keeps_mark``: and its machine runs on."""
        self.is_up = False
        self.keeps_mark = keeps_mark

    @property
    def marked_end(self) -> int:
        """Return the offset below which its disk can tell a loss from a torn tail.

        This holds unless its mark is lost as well.
        """
        return self.durable.end_offset if self.keeps_mark else self.secured_end

    def has_recovered(self, committed: LogMirror) -> bool:
        """Return whether it runs, may vote, and its disk has all it ever had and ``committed``."""
        end_offset = committed.end_offset
        return (
            self.is_up
            and self.durable.end_offset >= max(self.damaged_at or 0, end_offset)
            and self.durable.chain_at(end_offset) == committed.chain
            and self.election.vote_floor is None
        )
