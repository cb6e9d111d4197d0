"""The pending change of the voter set on a leader, and its answer.

``voter_change_checks`` decides which change may begin; ``voter_changes`` carries it out.

See: KIP-853; ADR 30.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from quorum.control_records import Origin
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.errors import ErrorCode
from quorum.types import NodeId, Voter


class ChangeKind(Enum):
    """What is to become of the voter."""

    ADD = "add"
    REMOVE = "remove"
    UPDATE = "update"


@dataclass(frozen=True, slots=True)
class LocalAsker:
    """Somebody on this node waits, under the token it chose."""

    token: int


@dataclass(frozen=True, slots=True)
class PeerAsker:
    """A replica asked for its self registration by a message."""

    sender: NodeId
    request_id: int


@dataclass(slots=True)
class PendingChange:
    """A change between its request and its commit.

    Life-cycle: the endpoint is probed (``offset`` is -1), then the record is appended, then it
    is committed. The caller is answered once: at the end, or at the append if it wanted that.

    Invariant: at most one per leader; it ends with the leadership term at the latest.
    """

    kind: ChangeKind
    voter: Voter
    """For a removal only the key counts."""
    asker: LocalAsker | PeerAsker | None
    """None once it has been answered."""
    deadline_ms: int = NEVER_MS
    ack_when_committed: bool = True
    readmit: bool = False
    origin: Origin | None = None
    """Who asked and why, for the voters record."""
    offset: int = -1
    """Where its voters record is; -1 before it is appended."""
    probe: PeerRequest = field(init=False)
    """The BeginQuorumEpoch to the endpoint. Silence lasts until the change has taken too long."""
    probe_refusal: str = ""
    """Why the last probe's handshake was refused; empty when the endpoint was only silent."""
    probe_refusal_code: ErrorCode = ErrorCode.NONE

    def __post_init__(self) -> None:
        self.probe = PeerRequest(self.voter.key.id, Purpose.PROBE)


@dataclass(frozen=True, slots=True)
class PendingChangeView:
    """The pending change for describe-quorum."""

    kind: str
    voter: Voter
    offset: int
    """Of its voters record; -1 while the endpoint is being probed."""
    deadline_ms: int
    """Monotonic milliseconds; the caller is answered by then."""
