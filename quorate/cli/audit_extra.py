"""Shared by the audit commands: the extra that they need, and how their errors are shown."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from quorate.cli.exits import CliError, Exit
from quorum.errors import LogDamagedError

DAMAGE_HINT = (
    "leave the file as it is and read another replica's directory; "
    "see docs/operations/recover.md, section Damage"
)


def need_arrow() -> None:
    """Check that pyarrow is installed.

    Raises:
        CliError: It is not; names the extra.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise CliError("pyarrow is not installed", hint="pip install 'quorate[parquet]' brings it")


@contextmanager
def reported_truncation() -> Iterator[None]:
    """Give a log that was truncated the exit code for things that differ.

    Raises:
        CliError: The log no longer contains what was exported.
    """
    from audit.errors import LogTruncatedError

    try:
        yield
    except LogTruncatedError as error:
        raise CliError(
            str(error),
            hint="keep the export as evidence and begin a new one in another folder",
            code=Exit.UNHEALTHY,
        ) from error


@contextmanager
def reported_damage() -> Iterator[None]:
    """Add to the error of a damaged log what to do about it.

    Raises:
        CliError: The log is damaged.
    """
    try:
        yield
    except LogDamagedError as error:
        raise CliError(str(error), hint=DAMAGE_HINT, code=Exit.DAMAGED) from error
