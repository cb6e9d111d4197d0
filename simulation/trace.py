"""The trace of a run: one line per event, a hash of all lines, and the last lines kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hashlib import blake2b

from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Received, ReceivedRequest
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.types import NodeId

KEPT = 50


class Trace:
    """Columns: event number, virtual time in microseconds, node, event, details, state afterwards.

    The state is ``role epoch start..watermark..end``.
    """

    def __init__(
        self, on_line: Callable[[str], None] | None = None, *, is_kept: bool = True
    ) -> None:
        self.is_kept = is_kept
        """Whether lines are used; if not, none need to be added."""
        self._hash = blake2b(digest_size=16)
        self._on_line = on_line
        self._last: deque[tuple[int, int, NodeId, str, str, str]] = deque(maxlen=KEPT)

    def add(
        self, number: int, now_us: int, node: NodeId, kind: str, detail: str, state: str
    ) -> None:
        """Add one line."""
        columns = (number, now_us, node, kind, detail, state)
        self._hash.update(f"{number} {now_us} {node} {kind} {detail} {state}\n".encode())
        self._last.append(columns)
        if self._on_line is not None:
            self._on_line(_line(columns))

    @property
    def last(self) -> list[str]:
        """Return the last lines, oldest first, formatted on demand."""
        return [_line(columns) for columns in self._last]

    def digest(self) -> str:
        """Return the hash of all lines so far."""
        return self._hash.hexdigest()


def _line(columns: tuple[int, int, NodeId, str, str, str]) -> str:
    number, now_us, node, kind, detail, state = columns
    return f"{number:6d} {now_us:10d} {node:3d} {kind:<10} {detail:<58} {state}"


def describe(sender: NodeId, received: Received) -> str:
    """Return a message as one short text."""
    message = received.request if isinstance(received, ReceivedRequest) else received
    kind, details = _DETAILS[type(message)]
    number = message.request_id & 0xFFFF
    return f"<-{sender} {kind}#{number:04x} e{message.epoch} {details(message)}"


def _fetch_answer(message: FetchResponse) -> str:
    size = len(message.records)
    if message.diverging is not None:
        return f"{message.error.name} diverging={message.diverging}"
    if message.snapshot_id is not None:
        return f"{message.error.name} snapshot={message.snapshot_id}"
    return f"{message.error.name} hw={message.high_watermark} bytes={size}"


_DETAILS: dict[type, tuple[str, Callable[..., str]]] = {
    VoteRequest: ("Vote", lambda m: f"pre={int(m.pre_vote)} last={m.last}"),
    VoteResponse: ("VoteA", lambda m: f"{m.error.name} granted={int(m.granted)}"),
    BeginQuorumEpochRequest: ("Begin", lambda m: f"leader={m.leader.id}"),
    BeginQuorumEpochResponse: ("BeginA", lambda m: m.error.name),
    EndQuorumEpochRequest: ("End", lambda m: f"leader={m.leader.id}"),
    EndQuorumEpochResponse: ("EndA", lambda m: m.error.name),
    BootstrapRequest: ("Found", lambda m: f"voter list={len(m.voter_list)}"),
    BootstrapResponse: ("FoundA", lambda m: f"{m.error.name} voter list={len(m.voter_list)}"),
    FetchRequest: ("Fetch", lambda m: f"at={m.fetch_offset}/{m.last_fetched_epoch}"),
    FetchResponse: ("FetchA", _fetch_answer),
    ChainDigestRequest: ("Chain", lambda m: f"offsets={len(m.offsets)}"),
    ChainDigestResponse: ("ChainA", lambda m: m.error.name),
    FetchSnapshotRequest: ("Snap", lambda m: f"{m.snapshot_id}+{m.position}"),
    FetchSnapshotResponse: (
        "SnapA",
        lambda m: f"{m.error.name} {m.snapshot_id}+{m.position} {len(m.chunk)}/{m.size}",
    ),
    ReadPositionRequest: ("Read", lambda m: f"replica={m.replica.id}"),
    UpdateVoterRequest: ("UpdV", lambda m: f"voter={m.voter.key.id}"),
    AddVoterRequest: ("AddV", lambda m: f"voter={m.voter.key.id}"),
    RemoveVoterRequest: ("RemV", lambda m: f"voter={m.voter.id}"),
    VoterChangeResponse: ("VoterA", lambda m: m.error.name),
    ReadPositionResponse: ("ReadA", lambda m: f"{m.error.name} at={m.read_offset}"),
}
