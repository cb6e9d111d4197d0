"""The errors of backups as exit codes, with what to do."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from audit.errors import AuditError
from quorate.backup.errors import (
    BackupDamagedError,
    BackupGapError,
    BackupTargetError,
    NoBackupError,
    OtherHistoryError,
)
from quorate.cli.audit_extra import reported_damage
from quorate.cli.exits import CliError, Exit
from quorate.recovery.errors import RecoveryRefusedError

DAMAGED_HINT = (
    "keep it as evidence, and create another backup in a new target; see docs/operations/backup.md"
)

_EXITS: tuple[tuple[type[Exception], str, Exit], ...] = (
    (NoBackupError, "`quorate backup create` makes one", Exit.NOT_FOUND),
    (BackupDamagedError, DAMAGED_HINT, Exit.DAMAGED),
    (OtherHistoryError, "name another target for this source", Exit.REFUSED),
    (BackupGapError, "begin another backup in a new target, and run it more often", Exit.CONFLICT),
    (BackupTargetError, "", Exit.USAGE),
    (AuditError, "", Exit.NOT_FOUND),
    (RecoveryRefusedError, "", Exit.REFUSED),
)


@contextmanager
def reported_backup() -> Iterator[None]:
    """Give the errors of a backup their exit codes, and say what to do.

    Raises:
        CliError: Something failed.
    """
    try:
        with reported_damage():
            yield
    except tuple(kind for kind, _, _ in _EXITS) as error:
        hint, code = next((hint, code) for kind, hint, code in _EXITS if isinstance(error, kind))
        raise CliError(str(error), hint=hint, code=code) from error
