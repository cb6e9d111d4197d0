"""What a replica knows about the equality of its log with others': counts and a divergence.

Digests are opaque here. See: ADR 5; ``chain_digests`` compares, ``divergence_resolution``
settles what differs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from quorum.core.state.digest_tally import UNKNOWN, Held
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.types import NodeId


class Stage(Enum):
    """Where a divergence stands."""

    VERIFYING = "reading its own files again"
    SEARCHING = "looking for the first batch that differs"
    POLLING = "asking the other voters"


@dataclass(slots=True, eq=False, kw_only=True)
class DigestRequest(PeerRequest):
    """The request for one replica's digests, and its answer."""

    purpose: Purpose = Purpose.CHAIN_DIGEST
    offsets: tuple[int, ...] = ()
    """Where digests were asked for last."""
    held: Held | None = None
    """What a voter answered in the poll, once that decides something."""


@dataclass(slots=True)
class DivergenceResolution:
    """Two logs that should be equal below ``end_offset`` and seem not to be.

    The search keeps two offsets: at ``low`` the answers are equal, or one of the two logs does
    not reach down there (``is_low_equal`` says which); at ``high`` they are not equal.
    """

    conflicting_peer: NodeId
    peer_votes: bool
    end_offset: int
    cuts: int
    """``LogView.cuts`` when it began: once the log was cut, it is about nothing any more."""
    low: int
    high: int
    stage: Stage = Stage.VERIFYING
    is_low_equal: bool = False
    is_high_known: bool = False
    first_offset: int = -1
    """Base offset of the first batch that differs; -1 while not known."""
    own: Held = UNKNOWN
    theirs: Held = UNKNOWN
    """Both sides' digests where the other voters are asked."""
    requests: dict[NodeId, DigestRequest] = field(default_factory=dict)


@dataclass(slots=True)
class ChainState:
    """Owned by ``CoreState``."""

    equal: int = 0
    different: int = 0
    too_early: int = 0
    """Fetches whose offset this leader's own disk had not reached; a later one covers it."""
    unknown: int = 0
    """Fetches with a digest that is not known on one of the two sides: nothing was proven."""
    resolution: DivergenceResolution | None = None
    due_ms: int = NEVER_MS
    """When the divergence resolution is due next."""
    quiet_until_ms: int = 0
    """No new divergence before: each reads the whole log."""
    quarantined_log: str = ""
    """Why this log is wrong; the node is about to stop."""

    @property
    def log_problem(self) -> str:
        """What is wrong with this log, or may be; empty for nothing known."""
        if self.quarantined_log:
            return f"this log is wrong: {self.quarantined_log}"
        if self.resolution is not None:
            stage = self.resolution.stage.value
            return f"the log differs from that of node {self.resolution.conflicting_peer}: {stage}"
        return ""
