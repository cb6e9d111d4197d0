"""Names of checkpoint files, and the states that the names show.

A file is written as ``.part``, becomes ``.checkpoint`` by one rename when it is complete and
verified, and ends as ``.deleted`` (retired) or ``.corrupt`` (quarantined, kept for analysis).
See: KIP-630, docs/reference/formats.md#checkpoint.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from pathlib import Path

from quorum.errors import QuorumUsageError
from quorum.types import SnapshotId


class FileState(Enum):
    """State of a checkpoint file; the value is the suffix of its name."""

    SEALED = ".checkpoint"
    PART = ".checkpoint.part"
    DELETED = ".checkpoint.deleted"
    CORRUPT = ".checkpoint.corrupt"


OWN_PART_LABEL = "own"
"""Label in the part file name of this node's own checkpoint, so that a download of the same
snapshot at the same time uses another file."""

_PARSED_MAX = 1024
_PATHS_MAX = 256
"""There are few checkpoints at a time, and each is looked up many times. Building a path costs
more than checking whether the file exists."""
_OFFSET_DIGITS = 20
_EPOCH_DIGITS = 10
_OFFSET_MAX = (1 << 63) - 1
_EPOCH_MAX = (1 << 31) - 1

# The requirements show epochs of 20 digits, Kafka writes 10: both are read. A part file may have
# a label, where Kafka has a random number.
_NAME = re.compile(
    r"([0-9]{20})-([0-9]{10}|[0-9]{20})(?:-[0-9a-z]+(?=\.checkpoint\.part$))?"
    r"(\.checkpoint(?:\.part|\.deleted|\.corrupt)?)",
)


def file_name(
    snapshot_id: SnapshotId, state: FileState = FileState.SEALED, *, label: str = ""
) -> str:
    """Return ``<offset, 20 digits>-<epoch, 10 digits>[-label]<suffix>``.

    Raises:
        QuorumUsageError: A negative offset or epoch, or one wider than its field.
    """
    offset, epoch = snapshot_id.offset, snapshot_id.epoch
    if not 0 <= offset <= _OFFSET_MAX or not 0 <= epoch <= _EPOCH_MAX:
        raise QuorumUsageError(f"{snapshot_id} cannot name a checkpoint")
    middle = f"-{label}" if label else ""
    return f"{offset:0{_OFFSET_DIGITS}d}-{epoch:0{_EPOCH_DIGITS}d}{middle}{state.value}"


@lru_cache(maxsize=_PATHS_MAX)
def file_path(
    directory: Path,
    snapshot_id: SnapshotId,
    state: FileState = FileState.SEALED,
    *,
    label: str = "",
) -> Path:
    """Return the path of that file in ``directory``; raises as ``file_name``."""
    return directory / file_name(snapshot_id, state, label=label)


@lru_cache(maxsize=_PARSED_MAX)
def parse_name(name: str) -> tuple[SnapshotId, FileState] | None:
    """Return the snapshot id and the state in a file name; None if it is no checkpoint file."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    offset, epoch = int(match[1]), int(match[2])
    if offset > _OFFSET_MAX or epoch > _EPOCH_MAX:
        return None
    return SnapshotId(offset, epoch), FileState(match[3])
