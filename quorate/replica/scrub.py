"""One scrub of a replica's own files: what to read, what was found, how to act on it.

Every batch of the log below the flushed end and every checkpoint is read again and verified, as
``quorate log verify`` does. Findings are handled as at any other time:

* a damaged batch: it is reported to the core, which has the log verified at once; if that finds
  it too, this process run ends with a vote floor stored, and the next sets the segment aside and
  fetches it anew;
* a damaged checkpoint: it is quarantined, and a new one of the present image is written.

See: docs/operations/runbooks.md (Corruption-found); ``quorum.core.integrity.quarantine``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from quorate.replica.replica import Replica
from quorum.core.contract.local_events import DamageFound
from quorum.errors import SnapshotCorruptError, StorageError
from quorum.log.config import LogConfig
from quorum.log.verify import verify_log
from quorum.ports import FileSystem
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, DigestAt, SnapshotId
from snapshot.reader import CheckpointReader

WINDOW_BYTES: Final = 64 << 10
"""Log bytes verified at once; each piece takes the interpreter for about a millisecond."""


@dataclass(frozen=True, slots=True)
class ScrubTarget:
    """What a pass verifies, as of its beginning."""

    directory: Path
    log_end: DigestAt
    """A batch boundary that is on disk, and the digest that the running log knows there."""
    checkpoints: Mapping[SnapshotId, Path]


@dataclass(frozen=True, slots=True)
class Finding:
    """A damaged file. ``checkpoint`` is None for the log."""

    cause: str
    checkpoint: SnapshotId | None = None
    is_only_reported: bool = False
    """Nothing follows: the disk could not read it, or it is what the node was formatted with,
    which is read again only at a start without any other checkpoint."""


def target_of(replica: Replica) -> ScrubTarget:
    """Return what is to be verified now. On the driver's thread."""
    stores = replica.stores
    end = replica.node.flushed_end_offset
    try:
        digest = stores.log.digest_at(end)
    except StorageError:
        digest = b""
    snapshots = stores.snapshots
    return ScrubTarget(
        stores.directory,
        DigestAt(end, digest),
        {each: snapshots.path(each) for each in snapshots.list()},
    )


def scrub(fs: FileSystem, target: ScrubTarget) -> list[Finding]:
    """Read and verify all of it; files that are removed meanwhile are left out. On any thread."""
    found = _scrub_log(fs, target)
    for snapshot_id, path in target.checkpoints.items():
        found += _scrub_checkpoint(fs, snapshot_id, path)
    return found


def _scrub_log(fs: FileSystem, target: ScrubTarget) -> list[Finding]:
    config = LogConfig(scan_bytes=WINDOW_BYTES)
    try:
        damage = verify_log(fs, target.directory, target.log_end, config=config).damage
    except StorageError as error:
        return [Finding(str(error), is_only_reported=True)]
    return [] if damage is None else [Finding(str(damage))]


def _scrub_checkpoint(fs: FileSystem, snapshot_id: SnapshotId, path: Path) -> list[Finding]:
    if not fs.exists(path):
        return []
    try:
        CheckpointReader(path, fs=fs, snapshot_id=snapshot_id).verify()
    except SnapshotCorruptError as error:
        is_first = snapshot_id == BOOTSTRAP_SNAPSHOT_ID
        return [Finding(str(error), snapshot_id, is_only_reported=is_first)]
    except StorageError as error:
        is_gone = not fs.exists(path)
        return [] if is_gone else [Finding(str(error), snapshot_id, is_only_reported=True)]
    return []


def act_on(replica: Replica, finding: Finding) -> None:
    """Act on a finding. On the driver's thread.

    Raises:
        StorageError: A damaged checkpoint could not be renamed.
    """
    if finding.is_only_reported:
        return
    if finding.checkpoint is None:
        replica.on_local_event(DamageFound(finding.cause))
    else:
        replica.checkpoints.withdraw(finding.checkpoint, finding.cause)
        replica.turn()
