"""Keep a node from running on a directory while a command reads or changes it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from quorate.cli.exits import CliError, Exit
from quorum.log.directory_lock import DirectoryInUseError, DirectoryLock

Lock = TypeVar("Lock")

STOP_HINT = "stop its node first"


def locked(directory: Path, *, hint: str = STOP_HINT, is_shared: bool = False) -> DirectoryLock:
    """Lock a directory, as ``DirectoryLock``. ``hint`` says what to do if a process uses it.

    Raises:
        CliError: Another process uses it.
        StorageError: The lock file cannot be made.
    """
    return taken(lambda: DirectoryLock(directory, is_shared=is_shared), hint)


def taken(lock: Callable[[], Lock], hint: str) -> Lock:
    """Take a lock. ``hint`` says what to do if a process has it.

    Raises:
        CliError: Another process has it.
        StorageError: As ``lock``.
    """
    try:
        return lock()
    except DirectoryInUseError as error:
        raise CliError(str(error), hint=hint, code=Exit.REFUSED) from error
