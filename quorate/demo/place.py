"""The folder of a demo: emptied only if a demo made it and none of its servers runs any more."""

from __future__ import annotations

import shutil
from pathlib import Path

from quorate.demo.local_cluster import PID_NAME
from quorum.errors import QuorateError, StorageError
from quorum.log.directory_lock import LOCK_NAME, DirectoryLock

MARKER = ".quorate-demo"


class PlaceTakenError(QuorateError):
    """The folder was not made by a demo, or servers of an earlier demo still run in it."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def running_in(folder: Path) -> list[str]:
    """Return the process ids of the servers that use a node's data directory below ``folder``.

    A server holds the lock of its directory until its process ends; "?" stands for a holder whose
    id is not written beside it.
    """
    found = []
    for lock in sorted(folder.glob(f"node-*/*/{LOCK_NAME}")):
        try:
            DirectoryLock(lock.parent).release()
        except StorageError:
            pid = lock.parent.parent / PID_NAME
            found.append(pid.read_text().strip() if pid.exists() else "?")
    return found


def take(folder: Path) -> None:
    """Empty ``folder`` and mark it as a demo's.

    Raises:
        PlaceTakenError: It contains files that no demo wrote, or servers still run in it, and
        nothing was
            touched; or it cannot be emptied.
    """
    marker = folder / MARKER
    if folder.exists() and any(folder.iterdir()) and not marker.exists():
        raise PlaceTakenError(f"{folder} is not empty and not of a demo", "name another --folder")
    pids = running_in(folder)
    if pids:
        raise PlaceTakenError(
            f"{len(pids)} servers of an earlier demo still run in {folder}",
            f"stop them with: kill {' '.join(pids)}"
            if "?" not in pids
            else "stop them, or name another --folder",
        )
    try:
        if folder.exists():
            shutil.rmtree(folder)
        folder.mkdir(parents=True)
    except OSError as error:
        raise PlaceTakenError(
            f"{folder} cannot be emptied: {error.strerror}", "name another --folder"
        ) from error
    marker.touch()
