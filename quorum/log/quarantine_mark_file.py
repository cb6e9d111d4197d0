"""``quarantined-log``: mark of a log whose history differs from that of a majority of voters.

All checksums of such a log are valid, so opening it finds no damage. The file names the offset
from which on the log must be set aside, and is kept until that is done.

See: ADR 5.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

from quorum.errors import LogDamagedError
from quorum.log.layout import QUARANTINED_NAME
from quorum.log.side_file import integer_field, parse_object, read_file, replace_file, seal, unseal
from quorum.ports import FileSystem


class QuarantineMark(NamedTuple):
    """Content of ``quarantined-log``."""

    offset: int
    """First offset that differs from the majority; 0 for the whole log and its checkpoints."""
    cause: str


def write_quarantine_mark(fs: FileSystem, directory: Path, quarantine_mark: QuarantineMark) -> None:
    """Store the mark durably.

    Raises:
        StorageError: Nothing, or all of it, is on disk.
    """
    line = json.dumps(quarantine_mark._asdict(), separators=(",", ":"))
    replace_file(fs, directory / QUARANTINED_NAME, seal(line))


def read_quarantine_mark(fs: FileSystem, directory: Path) -> QuarantineMark | None:
    """Return the stored mark; None without a file.

    Raises:
        LogDamagedError: The file exists but is unreadable: the log was quarantined from an
            unknown offset on.
    """
    path = directory / QUARANTINED_NAME
    if not fs.exists(path):
        return None
    try:
        fields = parse_object(unseal(read_file(fs, path)))
        return QuarantineMark(integer_field(fields, "offset", least=0), str(fields.get("cause")))
    except ValueError as error:
        raise LogDamagedError(
            f"the log was quarantined, but its mark is damaged: {error}",
            path=path,
            position=0,
            offset=0,
        ) from error


def remove_quarantine_mark(fs: FileSystem, directory: Path) -> None:
    """Remove the mark after the log was set aside.

    Raises:
        StorageError: The mark may come back; setting aside again is harmless.
    """
    fs.unlink(directory / QUARANTINED_NAME)
    fs.sync_directory(directory)
