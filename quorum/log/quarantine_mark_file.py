"""``quarantined_log``: that a majority of voters holds another history than this log.

Every checksum of such a log is right, so opening it finds nothing wrong. The file says from
which offset on it must be set aside, and survives until that has been done.

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
    """What ``quarantined_log`` says."""

    offset: int
    """First offset that a majority holds differently; 0 for the whole log and its checkpoints."""
    cause: str


def write_quarantine_mark(fs: FileSystem, directory: Path, quarantine_mark: QuarantineMark) -> None:
    """Store it durably.

    Raises:
        StorageError: Nothing, or all of it, is on disk.
    """
    line = json.dumps(quarantine_mark._asdict(), separators=(",", ":"))
    replace_file(fs, directory / QUARANTINED_NAME, seal(line))


def read_quarantine_mark(fs: FileSystem, directory: Path) -> QuarantineMark | None:
    """What is stored; None without a file.

    Raises:
        LogDamagedError: The file is there and cannot be read: somebody quarantined this log, and
            how much of it is not known any more.
    """
    path = directory / QUARANTINED_NAME
    if not fs.exists(path):
        return None
    try:
        fields = parse_object(unseal(read_file(fs, path)))
        return QuarantineMark(integer_field(fields, "offset", least=0), str(fields.get("cause")))
    except ValueError as error:
        raise LogDamagedError(
            f"the log was quarantined, but not legibly: {error}", path=path, position=0, offset=0
        ) from error


def remove_quarantine_mark(fs: FileSystem, directory: Path) -> None:
    """Forget it, once what it names has been set aside.

    Raises:
        StorageError: It may come back; setting aside again does no harm.
    """
    fs.unlink(directory / QUARANTINED_NAME)
    fs.sync_directory(directory)
