"""What is wrong with the source of an audit question, and what to do about it."""

from __future__ import annotations

import fcntl
import os
import re
import sys
from pathlib import Path

from quorate.cli.did_you_mean import did_you_mean
from quorate.cli.exits import CliError, Exit

_NO_TABLE = re.compile(r"Table with name (\S+) does not exist")


def check_one_source(folder: Path | None, log: Path | None) -> None:
    """Check that one source is named.

    Raises:
        CliError: None is, or two are.
    """
    if folder is None and log is None:
        raise CliError("name either --export or --log", code=Exit.USAGE)
    if folder is not None and log is not None:
        raise CliError(
            "name either --export or --log, not both: an answer is from one of them",
            code=Exit.USAGE,
        )


def check_text(text: str, name: str) -> None:
    """Check that an argument was UTF-8; Python keeps other bytes as characters that are none.

    Raises:
        CliError: It was not.
    """
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise _not_utf8(name, error.start) from error


def query_of_stdin() -> str:
    """Return the query on standard input.

    Raises:
        CliError: It is not UTF-8.
    """
    try:
        return sys.stdin.read()
    except UnicodeDecodeError as error:
        raise _not_utf8("the query on standard input", error.start) from error


def _not_utf8(name: str, position: int) -> CliError:
    return CliError(f"{name} is not UTF-8 text, at position {position}", code=Exit.USAGE)


def no_export(folder: Path) -> CliError:
    """Return the error for a folder without a complete range of an export."""
    from audit.export_files import LOCK_NAME
    from audit.export_target import is_data_directory

    if is_data_directory(folder):
        return CliError(
            f"{folder}: contains no export; it is a data directory",
            hint="name it with --log",
            code=Exit.NOT_FOUND,
        )
    lock = folder / LOCK_NAME
    if not lock.exists():
        return CliError(
            f"{folder}: contains no export",
            hint=f"`quorate export DATA_DIRECTORY --to {folder}` makes one",
            code=Exit.NOT_FOUND,
        )
    if _is_locked(lock):
        return CliError(
            f"{folder}: contains no export yet; one is running, and no part of it is complete",
            hint="ask again when it has ended, or a data directory with --log",
            code=Exit.NOT_FOUND,
        )
    return CliError(
        f"{folder}: contains no export; one was stopped before any part of it was complete, or "
        "found no records",
        hint="run the same `quorate export` again",
        code=Exit.NOT_FOUND,
    )


def check_is_no_export(log: Path) -> None:
    """Check that what should be a log is no export.

    Raises:
        CliError: It is.
    """
    from audit.export_files import ExportFolder

    if log.is_dir() and ExportFolder(log).ranges():
        raise CliError(
            f"{log}: contains no log; it is an export",
            hint="name it with --export",
            code=Exit.NOT_FOUND,
        )


def unknown_table(message: str, known: list[str]) -> CliError | None:
    """Return the error for a query that names a table which does not exist; None for others."""
    found = _NO_TABLE.search(message)
    if found is None:
        return None
    near = did_you_mean(found[1].lower(), known)
    return CliError(
        f"there is no table or view {found[1]}",
        hint="; ".join(filter(None, [near, f"there are {', '.join(known)}"])),
        code=Exit.USAGE,
    )


def check_writable(target: Path) -> None:
    """Check that a file can be made there, before minutes of reading.

    Raises:
        CliError: Its folder does not exist, or it or its folder is not writable.
    """
    folder = target.parent
    if not folder.is_dir():
        reason = f"there is no folder {folder}"
    elif not os.access(folder, os.W_OK | os.X_OK):
        reason = f"nothing may be written into {folder}"
    elif target.exists() and not os.access(target, os.W_OK):
        reason = "the file there may not be written"
    else:
        return
    raise CliError(f"{target}: cannot write the report: {reason}", code=Exit.USAGE)


def _is_locked(lock: Path) -> bool:
    """Return whether an exporter holds the lock; it is not taken, nor waited for."""
    try:
        descriptor = os.open(lock, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(descriptor)
    return False
