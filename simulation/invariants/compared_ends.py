"""A leader reports a history as equal only where it compared digests (ADR 5; etcd #14039)."""

from __future__ import annotations

from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Message
from quorum.core.state.roles import Leader
from quorum.errors import StorageError
from quorum.types import NodeId, ReplicaKey
from simulation.invariants.invariant import Invariant
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen


class ComparedEnds(Invariant):
    """Where a leader reports that a replica's history is equal, both digests were known and equal
    when a Fetch from that position arrived.

    A position with a missing digest was not compared. Checked at every Fetch of the replica.
    """

    name = "compared-ends"
    received_kinds = (FetchRequest,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.equal: dict[tuple[NodeId, int, int, ReplicaKey], set[int]] = {}
        """By leader, its incarnation, epoch and a replica: the positions with equal digests since
        the last check, and the position that the leader reported then."""

    def on_received(self, seen: Seen, sender: NodeId, message: Message) -> None:
        if type(message) is not FetchRequest:
            return
        # Not by ``describe_quorum``: that makes a view of every replica.
        core = seen.replica.node._core  # noqa: SLF001
        role = core.role
        if type(role) is not Leader:
            return
        replica = message.replica
        progress = role.remote.get(replica.id)
        if progress is None or progress.key != replica:
            progress = role.observers.get(replica)
        end_offset = -1 if progress is None else progress.compared_end
        key = (seen.id, seen.incarnation, core.election.epoch, replica)
        equal = self.equal.get(key)
        if equal is None:
            equal = self.equal[key] = {-1}
        if end_offset not in equal:
            self.fail(
                "a replica's history is reported equal where the digests were never compared",
                node=seen.id,
                replica=replica.id,
                compared_end=end_offset,
                equal=sorted(equal)[-10:],
            )
        offset = message.fetch_offset
        if offset != end_offset and self._is_equal(seen, offset, message.digest):
            equal.add(offset)

    @staticmethod
    def _is_equal(seen: Seen, offset: int, digest: bytes) -> bool:
        log = seen.replica.stores.log
        if not digest or not log.start.offset <= offset <= log.end.offset:
            return False
        try:
            return log.digest_at(offset) == digest
        except StorageError:
            # This read failed; the node's own read may have succeeded.
            return True
