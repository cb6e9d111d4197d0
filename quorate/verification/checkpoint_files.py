"""Verify checkpoints: their files, their position in the log, and their content by a replay.

The header's log digest proves which log a checkpoint is of, the footer's state digest that it is
what was written. Only a replay of the log proves that what was written is right: the checkpoint
must hold the same state as the log below it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from pathlib import Path

from audit.plan import CheckpointFile
from audit.scan import load_state
from quorate.timetravel.difference import Difference, differences
from quorum.errors import QuorateError, SnapshotCorruptError, StorageError
from quorum.ports import FileSystem
from quorum.types import SnapshotId
from snapshot.naming import FileState, parse_name
from snapshot.reader import CheckpointReader
from snapshot.verifier import CheckpointSummary
from statemachine.dump import state_digest
from statemachine.image import MetadataImage
from statemachine.records import OWN_API_KEY_MIN

NAMED_MAX = 3
"""Entities that a sentence about a difference names."""


@dataclass(frozen=True, slots=True)
class VerifiedCheckpoint:
    """A sealed checkpoint that was read from end to end."""

    snapshot_id: SnapshotId
    path: Path
    summary: CheckpointSummary | None
    """None if the file is damaged."""
    problem: str = ""
    """Why it is not intact, or not the checkpoint of this log; empty if nothing speaks against it.
    """
    is_replayed: bool = False
    """Its content was compared with a replay of the log, and is equal to it."""


def verify_checkpoint_files(fs: FileSystem, partition: Path) -> list[VerifiedCheckpoint]:
    """Read every sealed checkpoint of a partition directory, ascending.

    One that a running node removes meanwhile is left out.

    Raises:
        StorageError: A file cannot be read.
    """
    found = []
    for name in fs.list_directory(partition):
        parsed = parse_name(name)
        if parsed is None or parsed[1] is not FileState.SEALED:
            continue
        path = partition / name
        try:
            summary = CheckpointReader(path, fs=fs).verify()
        except SnapshotCorruptError as error:
            found.append(VerifiedCheckpoint(parsed[0], path, None, str(error)))
        except StorageError:
            if fs.exists(path):
                raise
        else:
            found.append(VerifiedCheckpoint(parsed[0], path, summary))
    return sorted(found, key=lambda each: (each.snapshot_id.offset, each.snapshot_id.epoch))


def with_problems(
    checkpoints: Iterable[VerifiedCheckpoint], problems: dict[SnapshotId, str]
) -> list[VerifiedCheckpoint]:
    """Return the checkpoints with the problems found elsewhere; their own come first."""
    return [
        replace(each, problem=each.problem or problems.get(each.snapshot_id, ""))
        for each in checkpoints
    ]


def content_problem(checkpoint: VerifiedCheckpoint, replayed: MetadataImage) -> str:
    """Return how the content differs from a replay up to its position; empty if it does not.

    A Kafka controller's checkpoint has no state digest and none of our own records, so both images
    are compared without those.
    """
    stored = checkpoint.summary.footer.state_digest if checkpoint.summary is not None else b""
    if stored and stored == state_digest(replayed):
        return ""
    try:
        image = load_state(CheckpointFile(str(checkpoint.path), checkpoint.snapshot_id))
    except QuorateError as error:
        return f"its records cannot be loaded: {error}"
    differing = [
        f"{each.entity.kind} {each.entity.name}"
        for each in islice(_differences(replayed, image, is_foreign=not stored), NAMED_MAX + 1)
    ]
    if not differing:
        return "" if not stored else "its state digest is not that of the log's replay"
    named = ", ".join(differing[:NAMED_MAX]) + (", ..." if len(differing) > NAMED_MAX else "")
    return f"its content is not that of the log's replay: {named}"


def _differences(
    replayed: MetadataImage, image: MetadataImage, *, is_foreign: bool
) -> Iterator[Difference]:
    for each in differences(replayed, image):
        if not (is_foreign and each.entity.record.API_KEY >= OWN_API_KEY_MIN):
            yield each
