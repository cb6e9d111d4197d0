"""Where a server's metrics and health checks read from.

Gauges are looked up when somebody asks (``metrics.collectors``); counters and histograms are
fed by events. Nothing here is called more often than once per event.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from metrics.facts import (
    ControllerFacts,
    ProcessFacts,
    QueueFacts,
    RaftFacts,
    ReplicaFacts,
    SnapshotFacts,
    StorageFacts,
)
from metrics.health import Check
from quorate.config.server_config import ServerConfig
from quorate.logs import suppressed_lines
from quorate.replica.replica import Replica
from quorate.server.loop_busy import busy_meter
from quorum.fair_share import FairShare
from quorum.ports import Clock
from quorum.supervisor import Supervisor
from quorum.transport.counters import TransportCounters
from snapshot.generator import snapshot_figures

FETCH_AGE_READY_MS = 10_000
"""A follower that has not heard from a leader for this long is not ready."""


class Observability:
    """Facts of one running replica. Owned by the event loop."""

    def __init__(
        self,
        replica: Replica,
        config: ServerConfig,
        clock: Clock,
        transport: TransportCounters,
        supervisor: Supervisor,
    ) -> None:
        self._replica = replica
        self._node = replica.node
        self._controller = replica.controller
        self._stores = replica.stores
        self._config = config
        self.busy_ratio = busy_meter()
        self._clock = clock
        self._transport = transport
        self._supervisor = supervisor

    def raft(self) -> RaftFacts:
        """Where this replica stands in the quorum."""
        node = self._node
        now_ms = self._clock.now_ms()
        end = node.log_end
        tree = node.tree()
        others = tuple(
            ReplicaFacts(
                view.key.id,
                view.is_voter,
                max(0, end.offset - max(0, view.log_end_offset)),
                (now_ms - view.last_fetch_ms) / 1000 if view.last_fetch_ms >= 0 else None,
            )
            for view in node.replicas()
            if view.key != node.me
        )
        return RaftFacts(
            role=node.role_name,
            is_voter=node.is_voter,
            hellos_refused=self._transport.hellos_refused,
            turned_away=self._transport.turned_away,
            clones_refused=self._transport.clones_refused,
            impostors_refused=self._transport.impostors_refused,
            frames_dropped=self._transport.outbox_dropped,
            leader_id=node.leader_id,
            voted_id=node.voted_id,
            epoch=node.epoch,
            can_write=node.can_write,
            high_watermark=node.high_watermark,
            log_start_offset=node.log_start.offset,
            log_end_offset=end.offset,
            log_end_epoch=end.epoch,
            voters=len(node.voters),
            voter_change_pending=node.voters_offset >= node.high_watermark,
            replicas=others,
            digests={
                "equal": node.chain.equal,
                "different": node.chain.different,
                "too_early": node.chain.too_early,
                "unknown": node.chain.unknown,
            },
            in_divergence_resolution=node.chain.resolution is not None
            or bool(node.chain.quarantined_log),
            relay_hops=len(tree.path),
            downstream=len(tree.downstream),
            subtree_lag_records=max(0, node.high_watermark - tree.subtree_low)
            if tree.subtree_low >= 0
            else 0,
            subtree_low=tree.subtree_low,
            is_subtree_low_provisional=tree.is_low_provisional,
        )

    def storage(self) -> StorageFacts:
        """The data directory."""
        log = self._stores.log
        report = self._stores.report
        return StorageFacts(
            log_segments=len(log.segment_bases),
            log_bytes=log.size_bytes,
            disk_free_bytes=_free_bytes(self._stores.directory),
            quarantined_files=len(self._stores.snapshots.quarantined)
            + sum(len(loss.segments) for _, loss in report.losses)
            + bool(report.recovery.restored_start),
        )

    def snapshot(self) -> SnapshotFacts:
        """The newest checkpoint."""
        store = self._stores.snapshots
        known = self._node.snapshots
        size = store.size(known[-1]) if known else 0
        figures = snapshot_figures(known, size, self._node.high_watermark)
        progress = self._controller.checkpoint
        return SnapshotFacts(
            count=figures.count,
            size_bytes=figures.size_bytes,
            end_offset=figures.end_offset,
            lag_records=figures.lag_records,
            age_seconds=self._replica.checkpoints.age_ms / 1000,
            changed_ratio=progress.changes.ratio,
        )

    def controller(self) -> ControllerFacts:
        """The applied image in numbers."""
        image = self._controller.image
        brokers = Counter(
            "fenced" if broker.fenced
            else "controlled_shutdown" if broker.in_controlled_shutdown
            else "active"
            for broker in image.brokers.values()
        )  # fmt: skip
        end_offset = image.provenance.end_offset
        return ControllerFacts(
            applied_end_offset=end_offset,
            applied_lag_records=max(0, self._node.high_watermark - end_offset),
            applied_timestamp_ms=image.provenance.timestamp_ms,
            brokers=brokers,
            topics=len(image.topics.names),
            partitions=image.topics.partition_count(),
            partitions_offline=len(image.topics.without_leader()),
            producers=len(image.producers.states),
            features=dict(image.features.levels),
        )

    def queues(self, *quotas: FairShare) -> list[QueueFacts]:
        """The bounded queues of the write path, and the places that callers share."""
        config = self._controller.config
        return [
            QueueFacts(
                "held_fetches", self._node.held_fetches, self._config.quorum.held_fetches_max
            ),
            QueueFacts("commands", self._controller.queue_length, config.queue_commands_max),
            QueueFacts(
                "groups_in_flight", self._controller.groups_in_flight, config.groups_in_flight_max
            ),
            *(QueueFacts(each.name, each.open_count, each.most, each.refused) for each in quotas),
        ]

    def process(self) -> ProcessFacts:
        """How the process itself fares."""
        return ProcessFacts(self._supervisor.restarts, suppressed_lines())

    # ------------------------------------------------------------------ checks

    def live_checks(self) -> tuple[Check, ...]:
        """Should this process be restarted? Never about peers."""
        return (Check("event_loop", lambda: None),)

    def ready_checks(self, is_draining: Callable[[], bool]) -> tuple[Check, ...]:
        """Should clients be sent here?"""
        return (
            Check("not_draining", lambda: "the node is shutting down" if is_draining() else None),
            Check("leader_known", self._leader_known),
            Check("votes", self._votes),
            Check("caught_up", self._caught_up),
            Check("replay", self._replay),
            Check("history", self._history),
            Check("disk_space", self._disk_space),
            Check("disk_writes", self._disk_writes),
        )

    def _leader_known(self) -> str | None:
        node = self._node
        if node.leader_id < 0:
            waits = f": {node.why_not_bootstrapped}" if node.why_not_bootstrapped else ""
            if self._controller.fault is not None:
                waits = "; where replay has stopped on every voter, as it has here, none will lead"
            return f"no leader is known in epoch {node.epoch} ({node.role_name.lower()}){waits}"
        if node.role_name == "Resigned":
            return f"led epoch {node.epoch} and resigned; no new leader is known yet"
        if node.leader_id == node.me.id and not (node.can_write or node.is_handing_over):
            return f"leads epoch {node.epoch} but has not committed a record of it yet"
        if node.awaits_leader:
            return f"leader {node.leader_id} of epoch {node.epoch} does not answer fetches"
        return None

    def _votes(self) -> str | None:
        disqualified = self._node.disqualified
        return f"never votes with its directory id: {disqualified}" if disqualified else None

    def _caught_up(self) -> str | None:
        if self._node.is_downloading:
            return "a snapshot is being fetched, because the leader's log starts beyond this one"
        # Asked ten times a second: not by way of ``controller``, which counts all partitions.
        applied = self._controller.image.provenance.end_offset
        if applied == 0:
            return "nothing has been applied yet"
        lag = self._node.high_watermark - applied
        if lag <= 0 or self._replica.driver.is_delivery_due:
            return None
        return f"the image is {lag} records behind the high watermark"

    def _history(self) -> str | None:
        """A divergence says so here until it is settled, and for good when this log is wrong."""
        return self._node.chain.log_problem or None

    def _replay(self) -> str | None:
        fault = self._controller.fault
        return None if fault is None else f"replay has stopped, so it does not lead: {fault}"

    def _disk_writes(self) -> str | None:
        waited_ms = self._node.disk_stalled_ms
        return f"the disk has completed no write for {waited_ms} ms" if waited_ms else None

    def _disk_space(self) -> str | None:
        free, least = _free_bytes(self._stores.directory), self._config.limits.disk_free_bytes_min
        return None if free >= least else f"{free} bytes free, {least} wanted"


def _free_bytes(directory: Path) -> int:
    return shutil.disk_usage(directory).free
