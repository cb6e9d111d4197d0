"""No replica is served from a log with another history (ADR 25)."""

from __future__ import annotations

from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message
from quorum.errors import ErrorCode
from quorum.types import NodeId
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class SameHistory(Invariant):
    """A leader that serves records has the replica's history below their base offset.

    Checked wherever both know their digest there.
    """

    name = "same-history"
    sent_kinds = (FetchResponse,)
    received_kinds = (FetchRequest,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.asked: dict[tuple[NodeId, int, NodeId, int], list[FetchRequest]] = {}
        """By leader, its incarnation, sender and request id: the request."""

    def on_received(self, seen: Seen, sender: NodeId, message: Message) -> None:
        if type(message) is FetchRequest:
            key = (seen.id, seen.incarnation, sender, message.request_id)
            self.asked.setdefault(key, []).append(message)

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        if type(message) is not FetchResponse or message.error != ErrorCode.NONE:
            return
        requests = self.asked.pop((seen.id, seen.incarnation, to, message.request_id), None)
        is_elsewhere = message.snapshot_id is not None or message.diverging is not None
        if requests is None or is_elsewhere or message.leader_id != seen.id:
            return
        for each in requests:
            if self._is_same(seen, each):
                return
        self.fail(
            "records were served to a replica with another history",
            node=seen.id,
            replica=to,
            fetch_offset=requests[0].fetch_offset,
            digest=requests[0].digest.hex(),
        )

    def _is_same(self, seen: Seen, request: FetchRequest) -> bool:
        if not request.digest:
            return True
        log, offset = seen.replica.stores.log, request.fetch_offset
        if not log.start.offset <= offset <= log.end.offset:
            return True
        own = log.digest_at(offset)
        return not own or own == request.digest
