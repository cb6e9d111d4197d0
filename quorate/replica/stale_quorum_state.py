"""Detects an election state that is older than the log beside it: a restored old copy.

An epoch is stored before anything of it is written (``runtime``, invariant 5). So where the durable
mark is of a later epoch, ``quorum-state`` is not the last one of this disk, and a vote may be
forgotten. A copy that is older by a vote only cannot be detected.

See: ADR 7 and 20; docs/operations/recover.md (Election-state).
"""

from __future__ import annotations

from pathlib import Path

from quorum.errors import ElectionStateError
from quorum.log.high_watermark_file import load_watermarks
from quorum.log.layout import QUORUM_STATE_NAME, WATERMARK_NAME
from quorum.ports import FileSystem
from quorum.types import ElectionState, Uuid


def check_newest(fs: FileSystem, directory: Path, state: ElectionState, owner: Uuid) -> None:
    """Compare with the durable mark of the disk ``owner``, which has a checksum of its own.

    Raises:
        ElectionStateError: One of the two files is not this disk's last one; nothing was changed.
    """
    marks = load_watermarks(fs, directory, owner)
    if marks is not None and marks.durable_epoch > state.epoch:
        raise ElectionStateError(
            f"{QUORUM_STATE_NAME} is of epoch {state.epoch}, and {WATERMARK_NAME} contains epoch "
            f"{marks.durable_epoch}: one of them is an older copy, or another node's. Put the "
            "right one back, or format an empty directory (a new directory id) and let it catch up",
            directory,
        )
