"""Bootstrap checkpoints with many removed voters, which would take long to remove one by one."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from quorate.features import INITIAL_LEVELS, KRAFT_VERSION_MAX
from quorum.ports import FileSystem
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, ReplicaKey, Voter
from snapshot.writer import write_checkpoint
from statemachine.codec import encode_record
from statemachine.records import FeatureLevelRecord

_FIRST_ID = 1000
"""First id of a removed voter; scripts use smaller node ids."""


def bury(fs: FileSystem, directory: Path, voters: Sequence[Voter], count: int) -> None:
    """Write a bootstrap checkpoint that names ``count`` removed voters."""
    write_checkpoint(
        fs,
        directory,
        BOOTSTRAP_SNAPSHOT_ID,
        values=[encode_record(FeatureLevelRecord(*each)) for each in INITIAL_LEVELS.items()],
        last_contained_log_timestamp=0,
        kraft_version=KRAFT_VERSION_MAX,
        voters=voters,
        removed=[ReplicaKey(_FIRST_ID + n, b"\2" * 16) for n in range(count)],
    )
