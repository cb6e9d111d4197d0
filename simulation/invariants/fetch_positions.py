"""The positions of the replicas that fetch from a node, as an outside observer knows them.

This module is not an invariant; several invariants use it.

The offsets that a replica requested since its last answered request are an upper bound of the
position that its source may assume. A replica that requests a lower offset than before is left out
until it reaches the old position again, because copies of earlier requests may arrive late. This
includes requests of an earlier process of the replica. The transport drops messages of an earlier
process once a later one has a session (``PeerSessions``). The simulated network is stricter: it
delays single messages across a restart of their sender. A source cannot tell such a message from
one of the present process, and then assumes the position from before the restart.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import ClassVar

from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.errors import ErrorCode
from quorum.types import NodeId
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


@dataclass(slots=True)
class _Asked:
    """The requests of one incarnation of a replica to one of its source, oldest first."""

    asker: Seen
    source: Seen
    requests: list[tuple[int, int, int]] = field(default_factory=list)
    """(request id, offset still needed, the source's clock in ms)."""
    is_answered: bool = False
    highest: int = -1
    """The highest offset that any process of the replica requested from this incarnation."""


class FetchPositions:
    """Receives all sent messages; answers for one source. ``of`` selects the sources to track."""

    KINDS: ClassVar[tuple[type, ...]] = (
        FetchRequest,
        FetchResponse,
        FetchSnapshotRequest,
        FetchSnapshotResponse,
    )
    """The message types that it needs."""

    def __init__(self, run_observer: RunObserver, of: Callable[[Seen], bool]) -> None:
        self._run_observer = run_observer
        self._of = of
        self._asked: dict[tuple[NodeId, NodeId], _Asked] = {}

    def sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        """Note a message that ``seen`` sent."""
        if type(message) is FetchRequest or type(message) is FetchSnapshotRequest:
            source = self._run_observer.nodes.get(to)
            if source is not None and source.is_up and self._of(source):
                self._ask(seen, source, message)
        elif (
            self._asked
            and (type(message) is FetchResponse or type(message) is FetchSnapshotResponse)
            and message.error == ErrorCode.NONE
        ):
            self._answer(seen, to, message.request_id)

    def _ask(self, seen: Seen, source: Seen, message: FetchRequest | FetchSnapshotRequest) -> None:
        key = (source.id, seen.id)
        asked = self._asked.get(key)
        if asked is None or asked.source is not source:
            asked = self._asked[key] = _Asked(seen, source)
        elif asked.asker is not seen:
            asked = self._asked[key] = _Asked(seen, source, highest=asked.highest)
        if isinstance(message, FetchSnapshotRequest):
            needed = message.snapshot_id.offset
        else:
            needed = message.fetch_offset
            if message.subtree is not None:
                needed = min(needed, message.subtree.low)
        now_ms = source.replica.node._core.now_ms  # noqa: SLF001 - no public view of its clock
        asked.requests.append((message.request_id, needed, now_ms))
        if needed > asked.highest:
            asked.highest = needed

    def _answer(self, seen: Seen, to: NodeId, request_id: int) -> None:
        asked = self._asked.get((seen.id, to))
        if asked is None or asked.source is not seen:
            return
        for place, (each, _, _) in enumerate(asked.requests):
            if each == request_id:
                del asked.requests[:place]
                asked.is_answered = True
                return

    def below(self, source: Seen, session_ms: int, now_ms: int) -> Iterator[tuple[NodeId, int]]:
        """Yield the replicas that are certainly live at ``source``.

        Each comes with a lower bound of the offset that it needs.
        """
        for (_, node_id), asked in self._asked.items():
            if asked.source is not source or not asked.is_answered:
                continue
            needed = max(offset for _, offset, _ in asked.requests)
            asked_ms = asked.requests[0][2]
            if needed >= asked.highest and now_ms - asked_ms < session_ms:
                yield node_id, needed
