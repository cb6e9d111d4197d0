"""Small files beside the segments: replaced as a whole, and verified by a checksum.

After a crash at any point, ``replace_file`` has left either the old or the new content. ``seal``
and ``unseal`` add a CRC-32C on a second line, which readers of the first line (Kafka's, for
``quorum-state``) ignore.
"""

from __future__ import annotations

import json
from functools import lru_cache
from pathlib import Path

from crc32c import crc32c

from quorum.errors import DiskFullError
from quorum.ports import FileSystem

TEMPORARY_SUFFIX = ".tmp"
SIDE_FILE_BYTES_MAX = 16 << 20
"""A larger side file counts as damaged and is not read."""

_PLACES_MAX = 64
"""The same few files are replaced again and again; splitting a path costs more than the write."""


@lru_cache(maxsize=_PLACES_MAX)
def _place(path: Path) -> tuple[Path, Path]:
    """Return the temporary file beside ``path``, and the directory of both."""
    return path.with_name(path.name + TEMPORARY_SUFFIX), path.parent


def replace_file(fs: FileSystem, path: Path, data: bytes) -> None:
    """Replace the content of ``path``: temporary file, sync, rename, directory sync.

    Durability: after the return the new content survives any crash; before it the old one does.

    Raises:
        DiskFullError: No space; the old content is unchanged.
        StorageError: The old or the new content is on disk; the caller must stop.
    """
    temporary, directory = _place(path)
    file = fs.open(temporary, create=True, writable=True)
    try:
        file.truncate(0)
        file.append(data)
        file.sync()
    except DiskFullError:
        fs.unlink(temporary)
        raise
    finally:
        file.close()
    fs.rename(temporary, path)
    fs.sync_directory(directory)


def read_file(fs: FileSystem, path: Path) -> bytes:
    """Return the whole content of a side file.

    Raises:
        StorageError: The file cannot be read.
        ValueError: The file is larger than any side file of ours.
    """
    file = fs.open(path)
    try:
        size = file.size()
        if size > SIDE_FILE_BYTES_MAX:
            raise ValueError(f"{size} bytes long, where {SIDE_FILE_BYTES_MAX} is the maximum")
        return file.read_at(0, size)
    finally:
        file.close()


def seal(line: str) -> bytes:
    """Return ``line`` and, on a second line, its checksum."""
    first = line.encode() + b"\n"
    return first + b"crc32c=%08x\n" % crc32c(first)


def unseal(data: bytes) -> str:
    """Return the first line of a sealed file.

    Raises:
        ValueError: The file differs from what ``seal`` wrote.
    """
    first, newline, _ = data.partition(b"\n")
    if not newline:
        raise ValueError("no checksum line")
    line = first.decode()
    if data != seal(line):
        raise ValueError("checksum does not match")
    return line


def parse_object(line: str) -> dict[str, object]:
    """Parse a line of JSON that must be an object.

    Raises:
        ValueError: It is not an object.
    """
    try:
        value = json.loads(line)
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    if not isinstance(value, dict):
        raise ValueError("not a JSON object")
    return value


def integer_field(
    fields: dict[str, object], name: str, *, least: int, default: int | None = None
) -> int:
    """Return an integer of at least ``least``; ``default`` if absent and a default is given.

    Raises:
        ValueError: Missing, of another type, or too small.
    """
    value = fields.get(name, default)
    if type(value) is not int or value < least:
        raise ValueError(f"{name} is {value!r}, where an integer of at least {least} is expected")
    return value
