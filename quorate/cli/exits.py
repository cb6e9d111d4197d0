"""How a command ends: exit codes, and from which error each follows.

The codes are a promise to scripts and stand in docs/reference/cli.md.
"""

from __future__ import annotations

from enum import IntEnum

from audit.errors import ExportDamagedError, ExportTargetError, NoLogError
from quorum.errors import (
    CommandError,
    ConfigError,
    CorruptBatchError,
    DiskFullError,
    ElectionStateError,
    ErrorCode,
    IdentityDamagedError,
    IdentityError,
    ListenError,
    LogDamagedError,
    QuorateError,
    QuorumUsageError,
    RecordCodecError,
    SnapshotCorruptError,
    UnknownRecordError,
    cause_of,
)
from quorum.listen_problem import is_wrong_address


class Exit(IntEnum):
    """What a process status of ours means."""

    OK = 0
    FAILED = 1
    USAGE = 2
    UNHEALTHY = 3
    """Unhealthy, or two things that should be equal differ."""
    NOT_FOUND = 4
    CONFLICT = 5
    """Something else holds the name or changed the thing, or the brokers there do not allow it;
    read again, then decide."""
    REFUSED = 6
    """Refused as unsafe or against a policy."""
    UNREACHABLE = 7
    """No node answered, or there is no quorum."""
    DAMAGED = 8
    """Data on disk is not what its checksums promise, or the disk of a server failed."""
    INTERRUPTED = 130


class CliError(Exception):
    """An expected failure of a command: one line, what to do next, and the exit code."""

    def __init__(self, message: str, *, hint: str = "", code: Exit = Exit.FAILED) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code


def exit_for_code(code: ErrorCode) -> Exit:
    """The exit code for a command that the cluster refused with ``code``."""
    return Exit[code.exit]


_DAMAGE = (
    CorruptBatchError,
    ElectionStateError,
    IdentityDamagedError,
    LogDamagedError,
    RecordCodecError,
    SnapshotCorruptError,
    UnknownRecordError,
)


def exit_for(error: Exception) -> Exit:
    """The exit code for an error of ours."""
    if isinstance(error, CliError):
        return error.code
    if is_of_another_account(error):
        return Exit.USAGE
    if isinstance(error, ExportDamagedError):
        return Exit.DAMAGED
    if isinstance(error, ExportTargetError):
        return Exit.REFUSED
    if isinstance(error, NoLogError):
        return Exit.NOT_FOUND
    if isinstance(error, CommandError):
        return exit_for_code(error.code)
    if isinstance(error, _DAMAGE):
        return Exit.DAMAGED
    is_usage = isinstance(error, ConfigError | QuorumUsageError | IdentityError)
    if isinstance(error, ListenError):
        is_usage = is_wrong_address(cause_of(error))
    return Exit.USAGE if is_usage else Exit.FAILED


def is_of_another_account(error: BaseException) -> bool:
    """Whether the operating system refused a file; trying again changes nothing.

    Also if that made the file count as damaged: nobody has read it.
    """
    cause = None if isinstance(error, ListenError) else cause_of(error)
    while isinstance(cause, QuorateError):
        cause = cause_of(cause)
    return isinstance(cause, PermissionError)


def hint_for(error: Exception) -> str:
    """What to do next, as one sentence; empty when the message says it all."""
    if isinstance(error, CliError):
        return error.hint
    if is_of_another_account(error):
        return "run it as the account that owns the files"
    if isinstance(error, IdentityError) and not isinstance(error, IdentityDamagedError):
        return "check the folder, or make a new one with `quorate format`"
    if isinstance(error, DiskFullError):
        return "make room outside of the data directory, then start the node again"
    if isinstance(error, ElectionStateError):
        return "leave the file as it is; see docs/operations/recover.md, section Election-state"
    if isinstance(error, _DAMAGE):
        return "leave the file as it is; see docs/operations/recover.md, section Damage"
    if isinstance(error, CommandError) and error.code.is_retriable:
        return "try again; `quorate quorum describe` shows whether there is a leader"
    return ""
