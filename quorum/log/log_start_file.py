"""``log-start``: where the log begins, and whether a snapshot is replacing it.

Kafka loses the log start in a restart; ours is stored before data below it is deleted, and it
never falls (requirement 630.5). The file also records the plan of a replacement by a snapshot:
while ``is_replacing`` is set, every segment in the directory must be removed (requirement 630.9).
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from quorum.errors import LogDamagedError
from quorum.log.layout import LOG_START_NAME
from quorum.log.side_file import integer_field, parse_object, read_file, replace_file, seal, unseal
from quorum.ports import FileSystem
from quorum.types import LOG_BEGINNING, OffsetAndEpoch

VERSION = 0


@dataclass(frozen=True, slots=True)
class LogStart:
    """First kept offset with the epoch of the record before it; ``digest`` may be empty."""

    start: OffsetAndEpoch = LOG_BEGINNING
    digest: bytes = b""
    """Log digest at the start; known after a replacement by a snapshot that contains one."""
    is_replacing: bool = False


def _decode(line: str) -> LogStart:
    fields = parse_object(line)
    if fields.get("version") != VERSION:
        raise ValueError(f"version {fields.get('version')!r}; this release reads {VERSION}")
    digest, replacing = fields.get("digest"), fields.get("replacing")
    if not isinstance(digest, str) or not isinstance(replacing, bool):
        raise ValueError("digest or replacing is missing")
    start = OffsetAndEpoch(
        integer_field(fields, "offset", least=0), integer_field(fields, "epoch", least=0)
    )
    return LogStart(start, bytes.fromhex(digest), replacing)


class LogStartFile:
    """The file of one partition directory. Owned by the writer thread."""

    def __init__(self, fs: FileSystem, directory: Path) -> None:
        self._fs = fs
        self.path = directory / LOG_START_NAME

    def load(self) -> LogStart | None:
        """Return the stored start; None if the file does not exist.

        Raises:
            LogDamagedError: The file is damaged.
        """
        if not self._fs.exists(self.path):
            return None
        try:
            return _decode(unseal(read_file(self._fs, self.path)))
        except ValueError as error:
            raise LogDamagedError(
                f"unusable log start: {error}", path=self.path, position=0, offset=0
            ) from error

    def save(self, value: LogStart) -> None:
        """Replace the start durably.

        Raises:
            DiskFullError: No space; the old start is unchanged.
            StorageError: The old or the new start is on disk; the caller must stop.
        """
        fields = {
            "version": VERSION,
            "offset": value.start.offset,
            "epoch": value.start.epoch,
            "digest": value.digest.hex(),
            "replacing": value.is_replacing,
        }
        replace_file(self._fs, self.path, seal(json.dumps(fields, separators=(",", ":"))))
