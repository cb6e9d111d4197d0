"""Which files belong to an export, and which of them are missing or damaged.

The last file of a range, that of ``history``, lists the rows of its typed tables, and where the
export begins. A file that was lost later is therefore noticed: without it, answers would be wrong.
Ranges of earlier releases have no list; of those, only gaps between ranges are found.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from audit.errors import ExportDamagedError, reason_of
from audit.export_files import ExportedRange, ExportFolder
from audit.schema import HISTORY, TYPED_TABLES
from quorum.errors import StorageError

TABLES_KEY = b"quorate.tables"
"""Metadata key of ``history`` files: the rows of each typed table in the range, as JSON."""
START_KEY = b"quorate.export_start"
"""Metadata key of ``history`` files: the first offset of the export."""

_REMEDY = "`quorate export` into this folder writes it again, as long as the log has its offsets"


class LostTables(NamedTuple):
    """Typed tables whose file of a range is missing, with the rows that it had."""

    exported: ExportedRange
    rows: Mapping[str, int]


@dataclass(frozen=True, slots=True)
class ExportContents:
    """What an export has, and what of it is missing."""

    ranges: list[ExportedRange]
    """Ranges with a history file, ascending."""
    holes: list[tuple[int, int]]
    """Offsets [start, end) of the export without a history file, ascending."""
    lost: list[LostTables]

    @property
    def start(self) -> int:
        """The first offset of an export that has ranges."""
        first = self.ranges[0].start
        return min(first, self.holes[0][0]) if self.holes else first


def contents_of(folder: ExportFolder) -> ExportContents:
    """Return what is there and what is missing; creates and changes nothing.

    Raises:
        ExportDamagedError: A history file is damaged, or ranges overlap.
        StorageError: A file cannot be read.
    """
    ranges = folder.ranges()
    there = {table: set(folder.ranges_of(table)) for table in TYPED_TABLES}
    lost, start = [], None
    for exported in ranges:
        metadata = _metadata(folder.path / HISTORY / exported.file_name)
        rows: dict[str, int] = json.loads(metadata.get(TABLES_KEY, b"{}"))
        if START_KEY in metadata:
            start = int(metadata[START_KEY])
        if gone := {table: rows[table] for table in rows if exported not in there[table]}:
            lost.append(LostTables(exported, gone))
    holes = []
    if start is not None and start < ranges[0].start:
        holes.append((start, ranges[0].start))
    for before, after in pairwise(ranges):
        if before.end > after.start:
            raise ExportDamagedError(
                f"{after.file_name} overlaps {before.file_name}; files were added by hand",
                folder.path / HISTORY,
            )
        if before.end < after.start:
            holes.append((before.end, after.start))
    return ExportContents(ranges, holes, lost)


def complete_ranges(folder: ExportFolder) -> list[ExportedRange]:
    """Return the ranges of an export of which no file is missing; none if there is no export.

    Raises:
        ExportDamagedError: A file is missing or damaged; the message names it and what to do.
        StorageError: A file cannot be read.
    """
    contents = contents_of(folder)
    for start, end in contents.holes:
        raise ExportDamagedError(
            f"the file of offsets {start} to {end} is missing from the export; {_REMEDY}",
            folder.path / HISTORY,
        )
    for exported, rows in contents.lost:
        raise ExportDamagedError(
            f"this file of the export is missing; {_REMEDY}",
            folder.path / min(rows) / exported.file_name,
        )
    return contents.ranges


def _metadata(path: Path) -> Mapping[bytes, bytes]:
    with readable(path):
        return pq.read_metadata(path).metadata or {}


@contextmanager
def readable(path: Path) -> Iterator[None]:
    """Name the file in errors of reading it.

    Raises:
        ExportDamagedError: It is no intact Parquet file.
        StorageError: It cannot be read.
    """
    try:
        yield
    except (OSError, pa.ArrowException) as error:
        if isinstance(error, OSError) and error.errno:
            raise StorageError(f"cannot read the export: {reason_of(error)}", path) from error
        raise damaged_file(path) from error


def damaged_file(path: Path) -> ExportDamagedError:
    """Return the error for a damaged file of an export."""
    return ExportDamagedError(
        "this file of the export is damaged; restore it, or export again into another folder", path
    )
