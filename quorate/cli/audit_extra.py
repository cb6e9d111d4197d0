"""What commands over the audit trail share: the extra they need, and how truncation is told."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager

from quorate.cli.exits import CliError, Exit


def need_arrow() -> None:
    """Check that pyarrow is installed.

    Raises:
        CliError: It is not; names the extra.
    """
    if importlib.util.find_spec("pyarrow") is None:
        raise CliError("pyarrow is not installed", hint="pip install 'quorate[spark]' brings it")


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
