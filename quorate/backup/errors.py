"""What can go wrong with a backup beside its storage and its source."""

from __future__ import annotations

from quorum.errors import QuorateError, StorageError


class NoBackupError(QuorateError):
    """There is no complete backup in the target."""


class NotInBackupError(QuorateError):
    """The backup does not have the wanted position; the message names what it has."""


class BackupDamagedError(QuorateError):
    """A file of a backup is missing, or is not what the manifest says."""


class OtherHistoryError(QuorateError):
    """The source is of another cluster than the backup, or its log has another history."""


class BackupGapError(QuorateError):
    """The source no longer has the records that follow the backup."""


class TrimmedMeanwhileError(BackupGapError):
    """A file that was to be read is gone. Another run may find all it needs."""


class NothingToCopyError(QuorateError):
    """No record of the source is known to be committed."""


class TargetNotEmptyError(QuorateError):
    """The target holds no backup, but files of somebody else."""


class BackupTargetError(QuorateError):
    """The target cannot be used."""


class TargetMissingError(StorageError):
    """The store has no such bucket."""


class TargetRefusedError(StorageError):
    """The store refuses the credentials, or what was asked with them."""


class TargetUnreachableError(StorageError):
    """The store does not answer, or cannot serve at present."""
