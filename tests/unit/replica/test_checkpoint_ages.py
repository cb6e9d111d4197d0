"""How long a checkpoint was held survives a restart: the disk knows since when it is there."""

from __future__ import annotations

import os
from pathlib import Path

from quorate.formatting import FormatPlan, format_directory
from quorate.replica.boot import Stores, open_stores
from quorum.log.config import LogConfig
from quorum.log.filesystem import OsFileSystem
from quorum.log.layout import partition_directory
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, Endpoint, ReplicaKey, Voter
from snapshot.config import SnapshotConfig
from snapshot.naming import file_name

ME = ReplicaKey(1, b"d" * 16)
HOUR_MS = 3_600_000
NOW_MS = 1_700_000_000_000


class StandingClock:
    """It is always the same moment."""

    def now_ms(self) -> int:
        return 5

    def wall_ms(self) -> int:
        return NOW_MS


def opened(folder: Path) -> Stores:
    return open_stores(
        OsFileSystem(),
        folder,
        node_id=1,
        log_config=LogConfig(),
        snapshot_config=SnapshotConfig(),
        clock=StandingClock(),
    )


def age_of_one_changed_at(folder: Path, wall_ms: int) -> int:
    path = partition_directory(folder) / file_name(BOOTSTRAP_SNAPSHOT_ID)
    os.utime(path, (wall_ms / 1000, wall_ms / 1000))
    stores = opened(folder)
    stores.log.close()
    stores.snapshots.close()
    return stores.state.snapshot_ages_ms[BOOTSTRAP_SNAPSHOT_ID]


def test_a_start_reports_the_age_of_each_checkpoint(tmp_path: Path) -> None:
    """An hour, and no less than nothing where the wall clock was set back meanwhile."""
    voters = (Voter(ME, (Endpoint("CONTROLLER", "localhost", 9093),)),)
    format_directory(OsFileSystem(), FormatPlan(tmp_path, "abc", 1, ME.directory_id, voters))
    assert age_of_one_changed_at(tmp_path, NOW_MS - HOUR_MS) == HOUR_MS
    assert age_of_one_changed_at(tmp_path, NOW_MS + HOUR_MS) == 0
