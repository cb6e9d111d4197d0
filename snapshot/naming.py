"""Names of checkpoint files, and the stages of their life that a name shows.

A file is written as ``.part``, becomes ``.checkpoint`` by one rename when it is complete and
verified, and leaves through ``.deleted`` (retired) or ``.corrupt`` (quarantined, kept for a
person to look at). See: KIP-630, docs/reference/formats.md#checkpoint.
"""

from __future__ import annotations

import re
from enum import Enum
from functools import lru_cache
from pathlib import Path

from quorum.errors import QuorumUsageError
from quorum.types import SnapshotId


class FileState(Enum):
    """A stage of a checkpoint file's life; the value is the suffix of its name."""

    SEALED = ".checkpoint"
    PART = ".checkpoint.part"
    DELETED = ".checkpoint.deleted"
    CORRUPT = ".checkpoint.corrupt"


OWN_PART_LABEL = "own"
"""Marks the part file of a checkpoint written here, so that a download of the same snapshot
at the same time has another file."""

_PARSED_MAX = 1024
_PATHS_MAX = 256
"""Few checkpoints are there at a time, and each is asked for many times; making a path costs more
than looking whether the file is there."""
_OFFSET_DIGITS = 20
_EPOCH_DIGITS = 10
_OFFSET_MAX = (1 << 63) - 1
_EPOCH_MAX = (1 << 31) - 1

# The issue text shows epochs of 20 digits, Kafka writes 10: both are read. A part file may carry
# a label, where Kafka has a random number.
_NAME = re.compile(
    r"([0-9]{20})-([0-9]{10}|[0-9]{20})(?:-[0-9a-z]+(?=\.checkpoint\.part$))?"
    r"(\.checkpoint(?:\.part|\.deleted|\.corrupt)?)",
)


def file_name(
    snapshot_id: SnapshotId, state: FileState = FileState.SEALED, *, label: str = ""
) -> str:
    """``<offset, 20 digits>-<epoch, 10 digits>[-label]<suffix>``.

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
    """Where the file of that name lies in ``directory``; raises as ``file_name``."""
    return directory / file_name(snapshot_id, state, label=label)


@lru_cache(maxsize=_PARSED_MAX)
def parse_name(name: str) -> tuple[SnapshotId, FileState] | None:
    """What a file name says; None for a file that is no checkpoint in any stage."""
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    offset, epoch = int(match[1]), int(match[2])
    if offset > _OFFSET_MAX or epoch > _EPOCH_MAX:
        return None
    return SnapshotId(offset, epoch), FileState(match[3])
