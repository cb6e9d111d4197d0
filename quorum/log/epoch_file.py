"""``leader-epoch-checkpoint``: the epoch history in Kafka's text format.

The log is authoritative: recovery derives the history from the batches and rewrites this
file if it is missing or differs. It exists for Kafka's tools and readers.

See: KIP-101 (leader epoch checkpoint), KIP-279, requirement 279.5.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path

from quorum.errors import StorageError
from quorum.log.layout import EPOCH_FILE_NAME
from quorum.log.side_file import read_file, replace_file
from quorum.ports import FileSystem
from quorum.types import EpochStart


def encode_epochs(epochs: Sequence[EpochStart]) -> bytes:
    """Encode as version 0, the number of entries, then one entry per line."""
    lines = ["0", str(len(epochs))]
    lines += [f"{entry.epoch} {entry.start_offset}" for entry in epochs]
    return ("\n".join(lines) + "\n").encode()


def decode_epochs(data: bytes) -> tuple[EpochStart, ...]:
    """Decode the text format; an empty file or the version alone means no entries, as in Kafka.

    Raises:
        ValueError: Malformed, of another version, or not ascending in both columns.
    """
    lines = data.decode("ascii").split("\n")
    if lines[-1] == "":
        lines.pop()
    if not lines:
        return ()
    if lines[0] != "0":
        raise ValueError(f"version {lines[0]!r}; this release reads 0")
    if len(lines) == 1:
        return ()
    if int(lines[1]) != len(lines) - 2:
        raise ValueError(f"{lines[1]} entries announced, {len(lines) - 2} found")
    entries = []
    for line in lines[2:]:
        epoch, start_offset = line.split(" ")
        entries.append(EpochStart(int(epoch), int(start_offset)))
    for before, after in pairwise(entries):
        if before.epoch >= after.epoch or before.start_offset >= after.start_offset:
            raise ValueError(f"entries {before} and {after} do not ascend")
    return tuple(entries)


class EpochFile:
    """The file of one partition directory. Owned by the writer thread."""

    def __init__(self, fs: FileSystem, directory: Path) -> None:
        self._fs = fs
        self.path = directory / EPOCH_FILE_NAME

    def load(self) -> tuple[EpochStart, ...] | None:
        """Return the stored history; None if the file is missing, unreadable or malformed."""
        try:
            if not self._fs.exists(self.path):
                return None
            return decode_epochs(read_file(self._fs, self.path))
        except (ValueError, StorageError):
            # Not an error of the log: the history is derived again from the batches.
            return None

    def save(self, epochs: Sequence[EpochStart]) -> None:
        """Replace the history durably.

        Raises:
            StorageError: The old or the new history is on disk.
        """
        replace_file(self._fs, self.path, encode_epochs(epochs))

    def remove(self) -> None:
        """Remove the file durably; no effect if there is none.

        Raises:
            StorageError: The file may still be there.
        """
        if self._fs.exists(self.path):
            self._fs.unlink(self.path)
            self._fs.sync_directory(self.path.parent)
