"""A leader; the test plays its voters and observers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import LocalEvent
from quorum.core.contract.output import Output
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.state.replica_progress import ReplicaView
from quorum.core.state.timers import Timer
from quorum.types import NodeId, ReplicaKey, SnapshotId
from simulation.harness.arrival import arrived
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import disk_with, key


class LoneLeader(CoreCluster):
    """Node 1 leads; every other voter has its log, and no message is in flight."""

    def __init__(
        self,
        voters: tuple[NodeId, ...] = (1, 2, 3),
        *,
        config: QuorumConfig | None = None,
        disk_log: str = "",
        snapshots: dict[SnapshotId, int] | None = None,
        unknown_disks: tuple[NodeId, ...] = (),
    ) -> None:
        """``unknown_disks``: voters whose records have no directory id."""
        disk = disk_with(disk_log, snapshots=snapshots)
        disks = dict.fromkeys(voters, disk) if disk_log else None
        super().__init__(voters, config=config, disks=disks, autostart=False)
        self.voters = tuple(
            replace(each, key=ReplicaKey(each.key.id)) if each.key.id in unknown_disks else each
            for each in self.voters
        )
        for each in voters:
            self.start(each)
        self._numbers = iter(range(1, 1 << 30))
        self.elect(1)
        for each in voters[1:]:
            self.members[each].is_up = False
        self.now_ms += self.config.fetch_max_wait_ms
        self.tick(1)
        self.queue.clear()
        for each in voters[1:]:
            self.fetch(each)

    def fetch(
        self,
        sender: NodeId,
        offset: int | None = None,
        *,
        is_proven: bool = True,
        **fields: Any,
    ) -> Output:
        """Send a Fetch of ``sender``, by default from the leader's end with its high watermark."""
        leader = self[1]
        values = {
            "replica": key(max(sender, 0)),
            "epoch": leader.epoch,
            "last_fetched_epoch": leader.log_end.epoch,
            "high_watermark": leader.high_watermark,
            "max_wait_ms": 500,
            **fields,
        }
        offset = leader.log_end_offset if offset is None else offset
        request = FetchRequest(next(self._numbers), CLUSTER, fetch_offset=offset, **values)
        received = arrived(request, is_proven=is_proven)
        return self.call(1, lambda node: node.receive(self.now_ms, sender, received))

    def fetch_snapshot(self, sender: NodeId, snapshot_id: SnapshotId, **fields: Any) -> Output:
        """Request a chunk of a checkpoint; the core decides, no chunk is read."""
        values = {"replica": key(max(sender, 0)), "position": 0, "max_bytes": 100, **fields}
        request = FetchSnapshotRequest(
            next(self._numbers), CLUSTER, epoch=self[1].epoch, snapshot_id=snapshot_id, **values
        )
        return self[1].receive(self.now_ms, sender, request)

    def report(self, event: LocalEvent) -> Output:
        """Deliver a local event to the leader."""
        return self.call(1, lambda node: node.on_local_event(self.now_ms, event))

    def view(self, replica: ReplicaKey) -> ReplicaView | None:
        """Return a replica's row of describe-quorum."""
        return next((each for each in self[1].replicas() if each.key == replica), None)

    def fired(self, timer: Timer) -> int:
        return self[1].timers_fired[timer]


def fetch_answers(output: Output) -> list[FetchResponse]:
    """The responses to Fetches in an output, in order."""
    messages = [
        *(each.message for each in output.immediate),
        *(each.message for each in output.after_persist),
    ]
    return [each for each in messages if isinstance(each, FetchResponse)]
