"""Core events become the right counts and latencies."""

from __future__ import annotations

import pytest
from prometheus_client import CollectorRegistry

from metrics import observer as observer_module
from metrics.families import Families
from metrics.observer import Observer
from quorum.core.contract.events import (
    ChunkReceived,
    DiskStalled,
    DownloadEnded,
    Event,
    FetchClassified,
    LeaderLost,
    LogDiverged,
    MessageIgnored,
    ProcessPaused,
    RecordsAppended,
    RequestRefused,
    RoleChanged,
    TransferEnded,
    TruncationRefused,
    VoteDecided,
    WatermarkMoved,
)
from quorum.core.contract.outcomes import DownloadOutcome, TransferOutcome
from quorum.core.contract.reasons import IgnoreReason, RoleChangeReason, VoteRejection
from quorum.errors import ErrorCode
from quorum.types import OffsetAndEpoch, ReplicaKey


class World:
    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.observer = Observer(Families(self.registry))

    def see(self, event: Event, *, at: float = 0.0) -> None:
        self.observer.on_event(event, at)

    def value(self, name: str, **labels: str) -> float | None:
        return self.registry.get_sample_value(f"quorate_{name}", labels)


@pytest.fixture
def world() -> World:
    return World()


def role(name: str, leader_id: int = -1, epoch: int = 1) -> RoleChanged:
    return RoleChanged("unattached", name, epoch, leader_id, RoleChangeReason.RESPONSE)


SNAPSHOT = OffsetAndEpoch(10, 1)


@pytest.mark.parametrize(
    ("event", "name", "labels", "value"),
    [
        (VoteDecided(ReplicaKey(2), 3, True, True), "raft_votes_total",
         {"kind": "pre_vote", "decision": "granted"}, 1),
        (VoteDecided(ReplicaKey(2), 3, False, False, VoteRejection.LOG_BEHIND), "raft_votes_total",
         {"kind": "vote", "decision": "rejected"}, 1),
        (FetchClassified(ReplicaKey(2), 5, 1, "snapshot"), "raft_fetches_total",
         {"answer": "snapshot"}, 1),
        (RequestRefused(2, "Vote", ErrorCode.FENCED_LEADER_EPOCH), "raft_requests_refused_total",
         {"request": "Vote", "error": "FENCED_LEADER_EPOCH"}, 1),
        (MessageIgnored(2, "FetchResponse", IgnoreReason.STALE_EPOCH),
         "raft_messages_ignored_total",
         {"message": "FetchResponse"}, 1),
        (MessageIgnored(2, "FetchResponse", IgnoreReason.BAD_RECORDS, "", True),
         "raft_protocol_violations_total",
         {"message": "FetchResponse"}, 1),
        (LogDiverged(5, SNAPSHOT, SNAPSHOT), "raft_log_divergences_total", {}, 1),
        (TruncationRefused(5, 6), "raft_truncations_refused_total", {}, 1),
        (LeaderLost(1, 2), "raft_leader_lost_total", {}, 1),
        (TransferEnded(ReplicaKey(2), 1, TransferOutcome.SUPERSEDED), "raft_transfers_total",
         {"outcome": "gave_way"}, 1),
        (TransferEnded(ReplicaKey(2), 1, TransferOutcome.REFUSED), "raft_transfers_total",
         {"outcome": "given_up"}, 1),
        (ProcessPaused(900), "raft_process_pauses_total", {}, 1),
        (DiskStalled(2000), "raft_disk_stalls_total", {}, 1),
        (ChunkReceived(SNAPSHOT, 0, 700, 900), "snapshot_downloaded_bytes_total", {}, 700),
        (DownloadEnded(SNAPSHOT, DownloadOutcome.INSTALLED), "snapshot_downloads_total",
         {"outcome": "installed"}, 1),
        (DownloadEnded(SNAPSHOT, DownloadOutcome.REFUSED), "snapshot_downloads_total",
         {"outcome": "failed"}, 1),
        (RecordsAppended(4, 9, 1), "raft_appended_records_total", {"source": "fetch"}, 5),
    ],
)  # fmt: skip
def test_an_event_moves_its_counter(
    world: World, event: Event, name: str, labels: dict[str, str], value: float
) -> None:
    world.see(event)
    assert world.value(name, **labels) == value


def test_commit_latency_runs_from_append_to_the_watermark_that_covers_it(world: World) -> None:
    world.see(role("leader", 1))
    world.see(RecordsAppended(0, 2, 1), at=10.0)
    world.see(RecordsAppended(2, 5, 1), at=10.5)
    world.see(WatermarkMoved(0, 4), at=11.0)
    assert world.value("raft_commit_seconds_count") == 1
    assert world.value("raft_commit_seconds_sum") == pytest.approx(1.0)
    world.see(WatermarkMoved(4, 5), at=12.0)
    assert world.value("raft_commit_seconds_sum") == pytest.approx(2.5)


def test_appends_of_a_lost_leadership_term_are_not_timed(world: World) -> None:
    world.see(role("leader", 1))
    world.see(RecordsAppended(0, 2, 1), at=1.0)
    world.see(role("follower", 2, epoch=2), at=2.0)
    world.see(WatermarkMoved(0, 2), at=3.0)
    assert world.value("raft_commit_seconds_count") == 0


def test_what_is_waiting_to_be_timed_is_bounded(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(observer_module, "COMMITS_WAITING_MAX", 3)
    world.see(role("leader", 1))
    for offset in range(10):
        world.see(RecordsAppended(offset, offset + 1, 1))
    world.see(WatermarkMoved(0, 10))
    assert world.value("raft_commit_seconds_count") == 3


def test_election_latency_runs_from_the_first_campaign_to_a_known_leader(world: World) -> None:
    world.see(role("prospective"), at=1.0)
    world.see(role("candidate", epoch=2), at=1.5)
    world.see(role("leader", 1, epoch=2), at=1.75)
    assert world.value("raft_election_seconds_count") == 1
    assert world.value("raft_election_seconds_sum") == pytest.approx(0.75)


def test_leader_changes_count_leadership_terms_not_repetitions(world: World) -> None:
    world.see(role("follower", 1, epoch=1))
    world.see(role("follower", 1, epoch=1))
    world.see(role("unattached", -1, epoch=2))
    world.see(role("follower", 1, epoch=2))
    world.see(role("follower", 3, epoch=3))
    assert world.value("raft_leader_changes_total") == 3
    assert world.value("raft_role_changes_total", state="unattached") == 1


def test_runtime_events_reach_their_metrics(world: World) -> None:
    watcher = world.observer
    watcher.sync_took(0.01)
    watcher.sync_took(0.01, is_inline=True)
    watcher.apply_took(0.01)
    watcher.read_took(0.01)
    watcher.group_appended(12)
    watcher.snapshot_generation_took(2.0)
    watcher.snapshot_load_took(3.0)
    watcher.snapshot_failed("generate")
    watcher.file_quarantined("segment")
    watcher.digest_compared(equal=True)
    watcher.digest_compared(equal=False)
    watcher.digest_compared(equal=None)
    watcher.metadata_failed()
    watcher.command_evaluated("CreateTopic", "ok")
    watcher.rpc_started("AdminService", "Describe")
    watcher.rpc_handled("AdminService", "Describe", "OK", seconds=0.2)
    watcher.rpc_handled("AdminService", "Watch", "CANCELLED")
    assert world.value("log_sync_seconds_count") == 2
    assert world.value("log_inline_syncs_total") == 1
    assert world.value("apply_seconds_count") == 1
    assert world.value("raft_read_seconds_count") == 1
    assert world.value("raft_append_group_batches_sum") == 12
    assert world.value("snapshot_generate_seconds_sum") == 2.0
    assert world.value("snapshot_load_seconds_sum") == 3.0
    assert world.value("snapshot_failures_total", operation="generate") == 1
    assert world.value("quarantines_total", kind="segment") == 1
    assert world.value("digest_mismatches_total") == 1
    assert world.value("digest_uncomparable_total") == 1
    assert world.value("metadata_errors_total") == 1
    assert world.value("commands_total", command="CreateTopic", result="ok") == 1
    names = {"service": "AdminService", "method": "Describe"}
    assert world.value("rpc_started_total", **names) == 1
    assert world.value("rpc_handled_total", code="OK", **names) == 1
    assert world.value("rpc_handling_seconds_sum", **names) == pytest.approx(0.2)
    assert world.value("rpc_handling_seconds_count", service="AdminService", method="Watch") is None
