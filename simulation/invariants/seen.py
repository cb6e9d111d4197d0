"""What an onlooker knows of one life of a node, and of the beginning of a read."""

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
    """What was so when a read began."""

    acknowledged_end: int
    """Everything acknowledged until then lies below."""
    sent_count: int
    """So many messages had left their nodes, of all nodes."""


def _no_time() -> int:
    return 0


def _is_not_corrupt(_path: Path) -> bool:
    return False


@dataclass(slots=True)
class Seen:
    """One life of one node."""

    id: NodeId
    incarnation: int
    replica: Replica
    written: LogMirror
    """What was handed to the disk."""
    durable: LogMirror
    """What the disk has completed."""
    election: ElectionState
    """What the disk has completed of ``quorum-state``."""
    damaged_at: int | None = None
    """Where its durable log ended when its disk lost something it may have acknowledged."""
    secured_end: int = 0
    """Up to here its durable mark was synced: a loss below is told from a torn tail (ADR 26)."""
    keeps_mark: bool = False
    """Whether its process ended on a machine that lives: its mark says all that was flushed."""
    leading: ElectionState | None = None
    """Election state with which it was last seen to lead rightly."""
    is_up: bool = True
    now_ms: Callable[[], int] = _no_time
    """Its own monotonic clock."""
    is_corrupt: Callable[[Path], bool] = _is_not_corrupt
    """Whether a file is no longer what its process wrote, and nobody has looked at it since."""
    owed_count: int = 0
    """Groups that its disk was handed and has not completed."""
    owed_since_ms: int = 0
    """When the disk last completed something, or was given something after being idle."""
    high_watermark: int = 0
    applied_end: int = 0
    epoch: int = 0
    log_end: int = 0
    looked_at: tuple[object, ...] = ()
    """Everything that a look at the node goes by, as it was at the last one."""

    def stop(self, *, keeps_mark: bool) -> None:
        """Its process is gone; ``keeps_mark``: and its machine lives."""
        self.is_up = False
        self.keeps_mark = keeps_mark

    @property
    def marked_end(self) -> int:
        """Below here its disk tells a loss from a torn tail, unless its mark is lost as well."""
        return self.durable.end_offset if self.keeps_mark else self.secured_end

    def has_recovered(self, committed: LogMirror) -> bool:
        """Whether it runs, votes freely, and its disk has as much as it ever had and all of
        ``committed``.
        """
        end_offset = committed.end_offset
        return (
            self.is_up
            and self.durable.end_offset >= max(self.damaged_at or 0, end_offset)
            and self.durable.chain_at(end_offset) == committed.chain
            and self.election.vote_floor is None
        )
