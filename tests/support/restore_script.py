"""A backup becomes a node's directory, as a script of crashes."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from quorate.backup.manifest import newest_manifest
from quorate.backup.restore import Restoration, restore
from quorate.backup.storage import DirectoryStorage
from quorum.errors import IdentityError
from quorum.incarnation import LogIncarnation
from quorum.log.identity import load_identity
from quorum.log.layout import partition_directory
from quorum.types import OffsetAndEpoch
from tests.support.audit_log import AuditLog
from tests.support.backed_up_log import World, trimmed
from tests.support.crash_scripts import Script, Step
from tests.support.crash_sites import WatchedFileSystem
from tests.support.storage_script import HOME, ME, VOTERS, clock, opened


class Restored(NamedTuple):
    """What a start finds on a disk that was restored."""

    start: OffsetAndEpoch
    end: OffsetAndEpoch
    digest: bytes
    incarnation: LogIncarnation


def read_restored(fs: WatchedFileSystem) -> Restored | None:
    """Return what a start finds; None if the server refuses the directory."""
    try:
        load_identity(fs, HOME)
    except IdentityError:
        return None
    stores = opened(fs)
    stores.log.close()
    assert not stores.report.losses
    log, voters = stores.log, stores.state.voters[-1]
    assert [each.key for each in voters.voters] == [ME]
    return Restored(log.start, log.end, log.digest_at(log.end.offset), voters.incarnation)


def emptied(fs: WatchedFileSystem) -> None:
    """Remove what an interrupted restore has left, as its operator is told to."""
    partition = partition_directory(HOME)
    for folder in (partition, HOME):
        for name in fs.list_directory(folder) if fs.exists(folder) else ():
            if folder / name != partition:
                fs.unlink(folder / name)


def restoring(folder: Path) -> Script:
    """Return a script that restores a backup which begins with a checkpoint."""
    log = AuditLog(folder / "node", segment_bytes=1500)
    log.elect(1)
    storage = DirectoryStorage(folder / "target")
    world = World(log, storage)
    world.grow(12)
    trimmed(log)
    world.grow(8)
    manifest, _ = world.back_up()
    assert manifest.checkpoint is not None
    restoration = Restoration(ME.id, ME.directory_id, VOTERS[0].endpoints, b"i" * 16)

    def restored(fs: WatchedFileSystem) -> None:
        if read_restored(fs) is None:
            emptied(fs)
            restore(
                storage, newest_manifest(storage)[0], fs, HOME, restoration, lambda _: {}, clock()
            )

    return Script(
        prepare=lambda fs: fs.make_directory(HOME), read=read_restored, steps=(Step(restored),)
    )
