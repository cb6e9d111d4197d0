"""Whether a target may be used for a new backup."""

from __future__ import annotations

import re

from quorate.backup.errors import NoBackupError, TargetNotEmptyError
from quorate.backup.manifest import newest_manifest
from quorate.backup.storage import Storage

_OF_A_BACKUP = re.compile(r"log|checkpoints|manifest-[0-9]+\.json|\.lock|lost\+found")
"""What an interrupted first run may have left, and what an empty disk has."""


def check_target(storage: Storage) -> None:
    """Check that the target holds a backup, or nothing else.

    Raises:
        TargetNotEmptyError: It holds files of somebody else and no backup, as a data directory.
        BackupDamagedError: No manifest is intact.
        StorageError: The target cannot be read.
    """
    try:
        newest_manifest(storage)
    except NoBackupError:
        others = [name for name in storage.names("") if not _OF_A_BACKUP.fullmatch(name)]
        if others:
            raise TargetNotEmptyError(
                f"the target holds no backup, but other files, such as {others[0]}"
            ) from None
