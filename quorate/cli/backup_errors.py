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
    NothingToCopyError,
    NotInBackupError,
    OtherHistoryError,
    TargetMissingError,
    TargetNotEmptyError,
    TargetRefusedError,
    TargetUnreachableError,
)
from quorate.cli.audit_extra import reported_damage
from quorate.cli.exits import CliError, Exit
from quorate.recovery.errors import RecoveryRefusedError

DAMAGED_HINT = (
    "keep it as evidence, and create another backup in a new target; see docs/operations/backup.md"
)
_NOT_EMPTY_HINT = "name a new folder; the data directory to be copied is named with --from"
_CREDENTIALS_HINT = (
    "credentials come from the store's usual place, such as AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY or a profile; see docs/operations/object-store.md"
)
_ENDPOINT_HINT = (
    "nothing of this run counts; check the endpoint, such as AWS_ENDPOINT_URL, and run it again"
)

_EXITS: tuple[tuple[type[Exception], str, Exit], ...] = (
    (NoBackupError, "`quorate backup create` makes one", Exit.NOT_FOUND),
    (NotInBackupError, "", Exit.NOT_FOUND),
    (NothingToCopyError, "name the directory of another replica", Exit.NOT_FOUND),
    (TargetNotEmptyError, _NOT_EMPTY_HINT, Exit.REFUSED),
    (BackupDamagedError, DAMAGED_HINT, Exit.DAMAGED),
    (OtherHistoryError, "name another target for this source", Exit.REFUSED),
    (BackupGapError, "begin another backup in a new target, and run it more often", Exit.CONFLICT),
    (BackupTargetError, "", Exit.USAGE),
    (TargetMissingError, "create the bucket, or correct the URL", Exit.NOT_FOUND),
    (TargetRefusedError, _CREDENTIALS_HINT, Exit.REFUSED),
    (TargetUnreachableError, _ENDPOINT_HINT, Exit.UNREACHABLE),
    (AuditError, "", Exit.NOT_FOUND),
    (RecoveryRefusedError, "", Exit.REFUSED),
)


@contextmanager
def reported_backup(target: str) -> Iterator[None]:
    """Give the errors of a backup in ``target`` their exit codes, and say what to do.

    Raises:
        CliError: Something failed.
    """
    try:
        with reported_damage():
            yield
    except tuple(kind for kind, _, _ in _EXITS) as error:
        hint, code = next((hint, code) for kind, hint, code in _EXITS if isinstance(error, kind))
        of_target = isinstance(error, NoBackupError | NotInBackupError | TargetNotEmptyError)
        text = f"{target}: {error}" if of_target else str(error)
        raise CliError(text, hint=hint, code=code) from error
