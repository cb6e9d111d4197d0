"""A drill: restore a backup to scratch, replay it, and compare every digest with the manifest."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from audit.directory import plan_source
from audit.replay import image_at, oldest_state
from quorate.backup.manifest import newest_manifest
from quorate.backup.storage import Storage
from quorate.backup.unpack import Unpacked, unpack
from quorate.verification.checkpoint_files import verify_checkpoint_files, with_problems
from quorate.verification.log_files import verify_log_files
from quorate.verification.replay import Replayed, replay
from quorum.log.filesystem import OsFileSystem
from statemachine.dump import state_digest

Progress = Callable[[int], None]


@dataclass(frozen=True, slots=True)
class Drilled:
    """What came out of a drill."""

    manifest_sequence: int
    cluster_id: str
    unpacked: Unpacked
    replayed: Replayed
    expected_digest: str
    """State digest at ``state_offset``, as the source reported it when the backup was made."""
    state_offset: int
    found_digest: str
    """The same by a replay of what was restored."""
    problems: tuple[str, ...]
    """What differs, one sentence each; empty if the backup can be restored."""


def drill(storage: Storage, scratch: Path, *, progress: Progress | None = None) -> Drilled:
    """Restore the newest backup below ``scratch``, which the caller deletes, and replay it.

    Raises:
        NoBackupError: There is none.
        BackupDamagedError: A file is missing or damaged.
        AuditError, LogDamagedError, CorruptBatchError, SnapshotCorruptError: What was restored
            cannot be replayed.
        StorageError: The target or the disk failed.
    """
    fs = OsFileSystem()
    manifest, _ = newest_manifest(storage)
    unpacked = unpack(storage, manifest, fs, scratch / "partition", progress=progress)
    checkpoints = verify_checkpoint_files(fs, unpacked.partition)
    heads = {
        each.snapshot_id: each.summary.head for each in checkpoints if each.summary is not None
    }
    log = verify_log_files(fs, unpacked.partition, heads)
    problems = [*log.problems]
    plan = plan_source(unpacked.partition)
    replayed = replay(plan, with_problems(checkpoints, log.contradictions))
    problems += [
        f"{each.path.name}: {each.problem}" for each in replayed.checkpoints if each.problem
    ]
    if unpacked.end != manifest.end:
        problems.append(f"the restored log ends at {unpacked.end}, the backup at {manifest.end}")
    if unpacked.log_digest.hex() != manifest.log_digest:
        problems.append(f"the log digest at offset {unpacked.end.offset} differs")
    offset = manifest.state_offset
    if offset == replayed.end_offset:
        found = replayed.state_digest
    else:
        found = state_digest(image_at(plan, max(offset, oldest_state(plan))).image)
    if found.hex() != manifest.state_digest:
        problems.append(f"the state as of offset {offset} is not what the source reported")
    return Drilled(
        manifest.sequence,
        manifest.cluster_id,
        unpacked,
        replayed,
        manifest.state_digest,
        offset,
        found.hex(),
        tuple(problems),
    )
