"""A node that makes no progress pauses before it asks again (reference/handlers.md, back-off)."""

from __future__ import annotations

from typing import TypeAlias

from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Message
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.types import NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen

WINDOW_MS = 20
REPEATS_MAX = 20
"""Maximum equal requests of a node to one peer within ``WINDOW_MS`` of its own clock. The shortest
pause after a failure is 5 ms in simulated runs, and held Fetches are answered after 10 ms."""

_Question: TypeAlias = tuple[object, ...]


class Pauses(Invariant):
    """No node requests the same records or the same chunk from a peer in a tight loop."""

    name = "pauses"
    sent_kinds = (FetchRequest, FetchSnapshotRequest)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self._asked: dict[tuple[NodeId, NodeId], tuple[_Question, int, int]] = {}
        """By node and peer: the last request, when its repetition began, and the count."""

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is FetchRequest:
            question: _Question = (
                seen.incarnation, message.epoch, message.fetch_offset, message.high_watermark,
                message.read_round,
            )  # fmt: skip
        elif type(message) is FetchSnapshotRequest:
            question = (seen.incarnation, message.epoch, message.snapshot_id, message.position)
        else:
            return
        now_ms, key = seen.now_ms(), (seen.id, to)
        before, since_ms, count = self._asked.get(key, ((), now_ms, 0))
        if question != before or now_ms - since_ms > WINDOW_MS:
            since_ms, count = now_ms, 0
        self._asked[key] = (question, since_ms, count + 1)
        if count >= REPEATS_MAX:
            self.fail(
                "a node repeats a request without pauses",
                node=seen.id,
                peer=to,
                question=type(message).__name__,
                times=count + 1,
                within_ms=now_ms - since_ms,
            )
