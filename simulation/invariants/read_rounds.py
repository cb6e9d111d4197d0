"""A read is confirmed by voters that fetched after it had begun (Raft dissertation 6.4)."""

from __future__ import annotations

from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Message
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.errors import ErrorCode
from quorum.types import NodeId, ReplicaKey
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import ReadBegun, Seen


class ReadRounds(Invariant):
    """Between the start of a read and its confirmation, a majority fetched from the leader.

    The fetches must be in the epoch of the leader that confirms; the leader itself counts if it is
    a voter. Neither a clock nor an echo of an older round replaces them. Checked where a leader
    confirms: to its own clients, and in its response to a replica that requested a position.
    """

    name = "read-rounds"
    sent_kinds = (
        FetchRequest,
        FetchSnapshotRequest,
        ReadPositionRequest,
        ReadPositionResponse,
    )
    received_kinds = (FetchRequest, FetchSnapshotRequest)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.spoke: dict[tuple[NodeId, int], dict[ReplicaKey, int]] = {}
        """By leader and epoch: the replicas whose Fetch arrived, and when the last was sent."""
        self.sent: dict[tuple[NodeId, int], int] = {}
        """When each Fetch was sent, counted in messages."""
        self.asked: dict[tuple[NodeId, int], int] = {}
        """Requests for a position, and when each was first sent."""
        self.voters: dict[NodeId, list[tuple[int, int, frozenset[ReplicaKey]]]] = {}
        """Voter sets in force at each node, newest last: start, and record offset."""

    def on_sent(self, seen: Seen, to: NodeId, message: Message) -> None:
        count = self.run_observer.sent_count
        if type(message) is FetchRequest or type(message) is FetchSnapshotRequest:
            self.sent[seen.id, message.request_id] = count
        elif type(message) is ReadPositionRequest:
            self.asked.setdefault((seen.id, message.request_id), count)
        elif type(message) is ReadPositionResponse and message.error == ErrorCode.NONE:
            since = self.asked.get((to, message.request_id))
            if since is not None:
                self._check(seen, message.epoch, since)

    def on_received(self, seen: Seen, sender: NodeId, message: Message) -> None:
        if type(message) is FetchRequest or type(message) is FetchSnapshotRequest:
            spoke = self.spoke.setdefault((seen.id, message.epoch), {})
            count = self.sent.get((sender, message.request_id), 0)
            spoke[message.replica] = max(count, spoke.get(message.replica, 0))

    def on_opened(self, seen: Seen, before: Seen | None) -> None:
        self.voters.pop(seen.id, None)

    def on_stepped(self, seen: Seen) -> None:
        node = seen.replica.node
        sets = self.voters.setdefault(seen.id, [])
        if not sets or sets[-1][1] != node.voters_offset:
            keys = frozenset(voter.key for voter in node.voters)
            sets.append((self.run_observer.sent_count, node.voters_offset, keys))

    def on_read(self, seen: Seen, begun: ReadBegun, offset: int) -> None:
        node = seen.replica.node
        if node.is_leader:
            self._check(seen, node.epoch, begun.sent_count)

    def _check(self, seen: Seen, epoch: int, since: int) -> None:
        spoke = self.spoke.get((seen.id, epoch), {})
        fresh = {key for key, count in spoke.items() if count > since} | {seen.replica.key}
        self.on_stepped(seen)
        sets = self.voters[seen.id]
        # Those in force at any time since the read began, newest first.
        for count, _, voters in reversed(sets):
            if 2 * len(voters & fresh) > len(voters):
                return
            if count <= since:
                break
        self.fail(
            "a read was confirmed although no majority has fetched since it began",
            node=seen.id,
            epoch=epoch,
            fresh=sorted(key.id for key in fresh),
            voters=sorted(key.id for key in sets[-1][2]),
        )
