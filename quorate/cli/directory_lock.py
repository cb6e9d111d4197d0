"""Keep a node from running on a directory while a command reads or changes it."""

from __future__ import annotations

from pathlib import Path

from quorate.cli.exits import CliError, Exit
from quorum.log.directory_lock import DirectoryInUseError, DirectoryLock

STOP_HINT = "stop its node first"


def locked(directory: Path, *, hint: str = STOP_HINT, is_shared: bool = False) -> DirectoryLock:
    """Lock a directory, as ``DirectoryLock``. ``hint`` says what to do if a process uses it.

    Raises:
        CliError: Another process uses it.
        StorageError: The lock file cannot be made.
    """
    try:
        return DirectoryLock(directory, is_shared=is_shared)
    except DirectoryInUseError as error:
        raise CliError(str(error), hint=hint, code=Exit.REFUSED) from error
