"""How far those are who fetch from a node, as an onlooker can know it. No property of its own.

What a replica has asked for since the request that was answered last bounds from above what its
source may take it to have. A replica that has asked for less than before is left out until it is
as far again: copies of what it asked before may arrive late. That holds for what an earlier process
of the replica asked as well. The transport takes nothing from an earlier process once a later one
has been heard (``PeerSessions``), but the simulated network delays single messages across a restart
of their sender, which is harder on the rules that safety rests on. A source cannot tell such a
message from one of the present process, and then takes the replica to have what it had before the
restart.
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
    """What one life of a replica asked of one life of its source, oldest first."""

    asker: Seen
    source: Seen
    requests: list[tuple[int, int, int]] = field(default_factory=list)
    """(request id, offset still needed, the source's clock in ms)."""
    is_answered: bool = False
    highest: int = -1
    """The furthest that any process of the replica has asked this life of the source."""


class FetchPositions:
    """Fed with all messages that leave; asked about one source. ``of`` says whose are kept."""

    KINDS: ClassVar[tuple[type, ...]] = (
        FetchRequest,
        FetchResponse,
        FetchSnapshotRequest,
        FetchSnapshotResponse,
    )
    """What there is to be learned from."""

    def __init__(self, run_observer: RunObserver, of: Callable[[Seen], bool]) -> None:
        self._run_observer = run_observer
        self._of = of
        self._asked: dict[tuple[NodeId, NodeId], _Asked] = {}

    def sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        """A message left ``seen``."""
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
        now_ms = source.replica.node._core.now_ms  # noqa: SLF001 - nobody else knows its time
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
        """Who certainly counts as live at ``source``, and what it needs at the lowest, or more."""
        for (_, node_id), asked in self._asked.items():
            if asked.source is not source or not asked.is_answered:
                continue
            needed = max(offset for _, offset, _ in asked.requests)
            asked_ms = asked.requests[0][2]
            if needed >= asked.highest and now_ms - asked_ms < session_ms:
                yield node_id, needed
