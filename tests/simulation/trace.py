"""The story of a run: one line per event, a hash over all of them, the last ones kept."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from hashlib import blake2b

from quorum.core.messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
    FetchRequest,
    FetchResponse,
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    Message,
    VoteRequest,
    VoteResponse,
)
from quorum.types import NodeId

KEPT = 50


class Trace:
    """Columns: event number, virtual time in microseconds, node, what happened, how, state after.

    The state is ``role epoch start..watermark..end``.
    """

    def __init__(self, on_line: Callable[[str], None] | None = None) -> None:
        self._hash = blake2b(digest_size=16)
        self._on_line = on_line
        self.last: deque[str] = deque(maxlen=KEPT)

    def add(
        self, number: int, now_us: int, node: NodeId, kind: str, detail: str, state: str
    ) -> None:
        """Write one line."""
        line = f"{number:6d} {now_us:10d} {node:3d} {kind:<10} {detail:<58} {state}"
        self._hash.update(line.encode())
        self.last.append(line)
        if self._on_line is not None:
            self._on_line(line)

    def digest(self) -> str:
        """Stands for every line so far."""
        return self._hash.hexdigest()


def describe(sender: NodeId, message: Message) -> str:
    """A message in one short piece of text."""
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
    FetchRequest: ("Fetch", lambda m: f"at={m.fetch_offset}/{m.last_fetched_epoch}"),
    FetchResponse: ("FetchA", _fetch_answer),
    FetchSnapshotRequest: ("Snap", lambda m: f"{m.snapshot_id}+{m.position}"),
    FetchSnapshotResponse: (
        "SnapA",
        lambda m: f"{m.error.name} {m.snapshot_id}+{m.position} {len(m.chunk)}/{m.size}",
    ),
}
