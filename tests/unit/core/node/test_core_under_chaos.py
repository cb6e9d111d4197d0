"""Several cores under loss, delay, reordering, slow disks and crashes, with safety checked."""

from __future__ import annotations

import random

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import ConnectionRefused, RequestFailed, SnapshotCreated
from quorum.core.contract.outcomes import DownloadOutcome
from quorum.types import OffsetAndEpoch
from tests.support.core_cluster import CoreCluster, Member

CONFIG = QuorumConfig(
    election_timeout_ms=60,
    fetch_timeout_ms=120,
    fetch_max_wait_ms=20,
    request_timeout_ms=60,
    retry_backoff_ms=5,
    lost_leader_jitter_ms=20,
    lost_leader_retry_ms=30,
    snapshot_chunk_bytes=16,
    start_offset_lag_max_ms=500,
    observer_session_ms=1000,
)


class Chaos:
    """Seeded random faults of a cluster, with a record of everything committed."""

    def __init__(self, seed: int, voters: int, observers: int) -> None:
        ids = list(range(1, voters + 1))
        self.rng = random.Random(seed)
        self.cluster = CoreCluster(ids, range(11, 11 + observers), config=CONFIG, seed=seed)
        self.cluster.records_per_answer = self.rng.choice([3, 1000])
        self.committed: dict[int, int] = {}
        self.leader_of: dict[int, int] = {}
        self.watermarks: dict[int, int] = {}
        self.epochs: dict[int, int] = {}
        self.counts = {"leaders": 0, "crashes": 0, "snapshots": 0, "installed": 0, "reads": 0}

    def step(self) -> None:
        rng, cluster = self.rng, self.cluster
        roll = rng.random()
        if roll < 0.55 and cluster.queue:
            item = cluster.queue.pop(rng.randrange(min(4, len(cluster.queue))))
            sender, receiver, message = item
            if rng.random() > 0.03 and cluster.members[receiver].is_up:
                cluster.call(receiver, lambda node: node.receive(cluster.now_ms, sender, message))
                if rng.random() < 0.02:
                    cluster.queue.append(item)
        elif roll < 0.70:
            cluster.now_ms += rng.randrange(8)
            self.wake()
        elif roll < 0.80:
            node_id = rng.choice(sorted(cluster.members))
            if node_id in cluster.slow_disks and cluster.members[node_id].is_up:
                cluster.persist(node_id)
        elif roll < 0.93:
            for leader in cluster.leaders():
                if cluster[leader].can_write:
                    cluster.propose(leader, rng.randrange(1, 4))
        else:
            self.disturb()
        self.check()

    def wake(self) -> None:
        for node_id, member in self.cluster.members.items():
            due = member.deadline_ms
            if member.is_up and due is not None and due <= self.cluster.now_ms:
                self.cluster.tick(node_id)
                after = member.deadline_ms
                assert after is None or after > self.cluster.now_ms

    def disturb(self) -> None:
        rng, cluster = self.rng, self.cluster
        node_id = rng.choice(sorted(cluster.members))
        member = cluster.members[node_id]
        roll = rng.random()
        if not member.is_up:
            if roll < 0.7:
                cluster.restart(node_id)
                self.watermarks[node_id] = 0
        elif roll < 0.2:
            cluster.crash(node_id)
            self.counts["crashes"] += 1
            for other in cluster.members:
                if other != node_id and cluster.members[other].is_up and rng.random() < 0.5:
                    cluster.call(
                        other,
                        lambda node: node.on_local_event(
                            cluster.now_ms, ConnectionRefused(node_id)
                        ),
                    )
        elif roll < 0.4:
            cluster.slow_disks ^= {node_id}
        elif roll < 0.6:
            self.snapshot(node_id)
        elif roll < 0.7:
            other = rng.choice(sorted(cluster.members))
            cluster.cut ^= {(node_id, other)}
        elif roll < 0.8:
            cluster.cut.clear()
        elif roll < 0.9 and member.raft.can_write:
            cluster.call(node_id, lambda node: node.read(cluster.now_ms, 1))
            self.counts["reads"] += 1
        else:
            peer = rng.choice(sorted(cluster.members))
            failed = RequestFailed(peer, rng.getrandbits(8))
            cluster.call(node_id, lambda node: node.on_local_event(cluster.now_ms, failed))

    def snapshot(self, node_id: int) -> None:
        cluster = self.cluster
        member = cluster.members[node_id]
        offset = member.raft.high_watermark
        log, start = member.disk.log, member.disk.start.offset
        if start < offset <= len(log) and offset < member.raft.log_end_offset:
            snapshot_id = OffsetAndEpoch(offset, log[offset - 1][0])
            member.add_snapshot(snapshot_id)
            cluster.call(
                node_id,
                lambda node: node.on_local_event(cluster.now_ms, SnapshotCreated(snapshot_id, 40)),
            )
            self.counts["snapshots"] += 1

    def check(self) -> None:
        for node_id, member in self.cluster.members.items():
            node = member.raft
            if not member.is_up:
                continue
            assert node.log_start.offset <= node.high_watermark <= node.log_end_offset
            assert self.watermarks.get(node_id, 0) <= node.high_watermark
            self.watermarks[node_id] = node.high_watermark
            durable_epoch = member.disk.election.epoch
            assert self.epochs.get(node_id, 0) <= durable_epoch <= node.epoch
            self.epochs[node_id] = durable_epoch
            if node.is_leader:
                if node.epoch not in self.leader_of:
                    self.counts["leaders"] += 1
                assert self.leader_of.setdefault(node.epoch, node_id) == node_id
            assert member.written.end == node.log_end
            self.check_committed(member, node.high_watermark - 12)
        self.counts["installed"] = max(
            self.counts["installed"],
            sum(
                type(event).__name__ == "DownloadEnded"
                and event.outcome is DownloadOutcome.INSTALLED
                for member in self.cluster.members.values()
                for event in member.events[-5:]
            ),
        )

    def check_everything(self) -> None:
        for member in self.cluster.members.values():
            self.check_committed(member, 0)

    def check_committed(self, member: Member, from_offset: int) -> None:
        disk = member.written
        for offset in range(max(from_offset, disk.start.offset), member.raft.high_watermark):
            epoch, _ = disk.log[offset]
            assert self.committed.setdefault(offset, epoch) == epoch

    def heal(self) -> None:
        cluster = self.cluster
        cluster.cut.clear()
        for node_id in list(cluster.members):
            cluster.slow_disks.discard(node_id)
            if not cluster.members[node_id].is_up:
                cluster.restart(node_id)
                self.watermarks[node_id] = 0
            cluster.persist(node_id)
        cluster.advance(4000)
        (leader,) = [each for each in cluster.leaders() if cluster[each].can_write]
        cluster.propose(leader, 2)
        cluster.settle()
        cluster.advance(1000)
        end = cluster[leader].log_end
        assert cluster[leader].high_watermark == end.offset
        for member in cluster.members.values():
            assert member.raft.log_end == end, (member.raft.me.id, member.raft.role_name)
            assert member.raft.high_watermark == end.offset


@pytest.mark.parametrize(
    "seed", [*range(3), *(pytest.param(seed, marks=pytest.mark.long) for seed in range(3, 12))]
)
@pytest.mark.parametrize(("voters", "observers"), [(3, 1), (5, 0), (1, 1), (2, 0)])
def test_random_faults_never_break_safety_and_heal(seed: int, voters: int, observers: int) -> None:
    """Goal: safety during faults, progress after them. Method: a seeded random schedule."""
    chaos = Chaos(seed, voters, observers)
    for _ in range(1500):
        chaos.step()
    chaos.check_everything()
    chaos.heal()
    chaos.check()
