"""A core that receives and sends wire messages, without the part of the runtime."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorum.core.contract.output import Output
from quorum.core.messages.fetch_messages import FetchDecision, ServeRecords
from quorum.core.node.raft_node import RaftNode
from quorum.types import NodeId
from simulation.harness.arrival import received


class WireNode(RaftNode):
    """A node whose Fetch responses carry descriptions instead of the bytes of records.

    A ``FetchResponse`` that it sends carries a ``ServeRecords``, a received one a
    ``ReceivedRecords``.
    """

    def receive(self, now_ms: int, sender: NodeId, message: Any) -> Output:
        return super().receive(now_ms, sender, received(message))

    def _finish(self) -> Output:
        output = super()._finish()
        output.immediate = [_as_it_travels(each) for each in output.immediate]
        output.after_persist = [_as_it_travels(each) for each in output.after_persist]
        return output


def _as_it_travels(sent: Any) -> Any:
    decided = sent.message
    if not isinstance(decided, FetchDecision):
        return sent
    wanted: Any = decided.content if isinstance(decided.content, ServeRecords) else b""
    return replace(sent, message=decided.response(wanted))
