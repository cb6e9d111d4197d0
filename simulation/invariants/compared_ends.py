"""A digest that nobody could compare proves nothing (ADR 5; etcd #14039)."""

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
    """Where a leader says that a replica's history was found equal, both digests were known there,
    and equal, when a Fetch from there arrived.

    A position at which either of them was missing is none that was compared. Looked at whenever
    the replica fetches again.
    """

    name = "compared-ends"
    received_kinds = (FetchRequest,)

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.equal: dict[tuple[NodeId, int, int, ReplicaKey], set[int]] = {}
        """Leader, its life, epoch and a replica, to where the two were equal since the last look;
        what the leader said then is among them."""

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
                "a replica's history is called equal where the digests were never compared",
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
            # A disk that failed to read for us may have read for its node.
            return True
