"""Broken replicas that do not notice that their disk lost or replaced something."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from quorum.core.election import campaign
from quorum.core.following import fetching
from quorum.core.following.snapshot_transfer import begin_download
from quorum.core.protocol import epoch_claims, refusals
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import NEVER_MS
from quorum.core.state.peer_requests import InFlight
from quorum.core.state.roles import Follower
from quorum.log import epoch_file, retention, segmented_log, side_file
from quorum.ports import FileSystem
from quorum.types import NodeId, ReplicaKey, SnapshotId
from simulation.options import Options
from statemachine.prepare import producer_ids
from tests.simulation.zoo.bug import Bug, Patch
from tests.simulation.zoo.replicating import cut


def truncated_segment_comes_back(patch: Patch) -> None:
    """The directory is synced for a new segment only, not after a truncation removed segments."""

    def remove_without_sync(fs: FileSystem, directory: Path, base_offset: int) -> None:
        retention.remove_segment(fs, directory, base_offset)

    def write_without_sync(fs: FileSystem, path: Path, data: bytes) -> None:
        sync_directory = fs.sync_directory
        target: Any = fs
        target.sync_directory = lambda path: None
        try:
            replace_file(fs, path, data)
        finally:
            target.sync_directory = sync_directory

    replace_file = side_file.replace_file
    patch.setattr(segmented_log, "remove_cut", remove_without_sync)
    patch.setattr(epoch_file, "replace_file", write_without_sync)


def wiped_disk_votes(patch: Patch) -> None:
    """Voters are identified by node id alone, not by directory id."""

    def matches(key: ReplicaKey, other: ReplicaKey) -> bool:
        return key.id == other.id

    patch.setattr(ReplicaKey, "matches", matches)


def bootstrap_server_waited_for(patch: Patch) -> None:
    """An observer that asks a bootstrap server for the leader waits for the answer for ever."""
    fetch_from = fetching._fetch_from

    def fetch_and_wait(core: CoreState, peer: NodeId) -> None:
        fetch_from(core, peer)
        if peer < 0 and core.requests.in_flight is not None:
            core.requests.in_flight.due_ms = NEVER_MS
            core.requests.in_flight.ticket = 1 << 62

    patch.setattr(fetching, "_fetch_from", fetch_and_wait)


def leader_asked_under_another_name(patch: Patch) -> None:
    """An observer that gets a checkpoint offer at a bootstrap address asks there again at once."""

    def begin_only(
        core: CoreState, flight: InFlight, role: Follower, snapshot_id: SnapshotId
    ) -> None:
        del role
        begin_download(core, flight.peer, snapshot_id)

    patch.setattr(fetching, "_take_snapshot_id", begin_only)


def epochs_without_end(patch: Patch) -> None:
    """Epochs are raised beyond the last one that a message can carry."""
    for module in (campaign, epoch_claims, refusals):
        patch.setattr(module, "EPOCH_MAX", 1 << 40)


def producer_epochs_without_end(patch: Patch) -> None:
    """A producer that has used up its epochs gets the one reserved for fencing, and no new id."""
    patch.setattr(producer_ids, "EPOCH_EXHAUSTED", 1 << 40)


def healthy_follower_cuts(patch: Patch) -> None:
    """A follower with an intact log truncates it because its leader reports another history."""

    def cut_and_fetch(core: CoreState, flight: InFlight) -> None:
        role = core.role
        if isinstance(role, Follower) and flight.peer == role.leader_id:
            cut(core, core.log.start.offset)

    patch.setattr(fetching, "_note_mismatch", cut_and_fetch)


BUGS = (
    Bug(
        "truncated-segment-comes-back",
        truncated_segment_comes_back,
        ("durable-survives", "log-matching", "no-crash"),
        "ALICE (OSDI 14): unlink without a sync of the directory",
        scenario="divergence/cut_segments_do_not_come_back.scn",
    ),
    Bug(
        "wiped-disk-votes",
        wiped_disk_votes,
        (
            "committed-on-majority",
            "read-rounds",
            "leader-completeness",
            "one-vote",
            "liveness",
        ),
        "KIP-853: a directory id per disk; Jepsen, TigerBeetle",
        seeds=1_000,
        options=Options("corruption", voters=(3,)),
    ),
    Bug(
        "bootstrap-server-waited-for",
        bootstrap_server_waited_for,
        ("liveness",),
        "KAFKA-19354: an observer stuck on a bootstrap server that is gone",
        options=Options("network", observers=(1, 2, 3)),
    ),
    Bug(
        "leader-asked-under-another-name",
        leader_asked_under_another_name,
        ("pauses",),
        "found from outside: a bootstrap address that is the leader",
        options=Options("network", observers=(1, 2, 3)),
    ),
    Bug(
        "epochs-without-end",
        epochs_without_end,
        ("epochs",),
        "KIP-595: an epoch is an int32, and one must be left",
        scenario="election/no_epoch_is_left.scn",
    ),
    Bug(
        "producer-epochs-without-end",
        producer_epochs_without_end,
        ("unique-ids",),
        "KAFKA-20090: an exhausted producer epoch is not rotated",
        scenario="replication/producer_epochs_rotate.scn",
    ),
    Bug(
        "healthy-follower-cuts",
        healthy_follower_cuts,
        ("committed-stays", "leader-completeness", "log-start-covered"),
        "ADR 25: each side decides about its own log",
        seeds=1_000,
        options=Options("history"),
    ),
)
