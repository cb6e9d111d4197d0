"""The folder of an export: its files, and how a range of the log becomes part of it.

Layout: ``<folder>/<table>/<from>-<to>-e<epoch>.parquet`` with offsets [from, to) and the epoch
of the record before ``to``. The file names are the only state of the export.

Invariants:
    1. A range is exported if and only if its ``history`` file exists: it is renamed last.
    2. Unfinished files begin with ``_``; Spark and pyarrow ignore them.
    3. A file with its final name is complete and synced.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

from audit.errors import AuditError, reason_of
from audit.schema import HISTORY, TABLES, TYPED_TABLES
from quorum.errors import StorageError

LOCK_NAME = "_lock"
_NAME = re.compile(r"([0-9]{20})-([0-9]{20})-e([0-9]{10})\.parquet")


class ExportedRange(NamedTuple):
    """Offsets [start, end) and the epoch of the last record in it."""

    start: int
    end: int
    epoch: int

    @property
    def file_name(self) -> str:
        """The name of the range's files, one per table."""
        return f"{self.start:020d}-{self.end:020d}-e{self.epoch:010d}.parquet"


def parse_range(name: str) -> ExportedRange | None:
    """Return the range in a file's name; None for any other file."""
    match = _NAME.fullmatch(name)
    return None if match is None else ExportedRange(*map(int, match.groups()))


class ExportFolder:
    """One export on disk. Only the holder of ``locked`` may change it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Lock out other exporters; creates a missing folder.

        Raises:
            AuditError: Another exporter holds the lock.
            StorageError: The folder cannot be created or written to.
        """
        with _named_errors(self.path):
            for table in TABLES:
                (self.path / table).mkdir(parents=True, exist_ok=True)
            lock = os.open(self.path / LOCK_NAME, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
        try:
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError as error:
                raise AuditError(f"{self.path}: another export is running here") from error
            yield
        finally:
            os.close(lock)

    def ranges(self) -> list[ExportedRange]:
        """Return the exported ranges, ascending; ``export_contents`` finds what is missing.

        Raises:
            StorageError: The folder cannot be read.
        """
        return sorted(self.ranges_of(HISTORY))

    def ranges_of(self, table: str) -> list[ExportedRange]:
        """Return the ranges of which a table has a file, in no order."""
        folder = self.path / table
        with _named_errors(folder, "read"):
            names = [entry.name for entry in folder.iterdir()] if folder.is_dir() else []
        return [found for name in names if (found := parse_range(name)) is not None]

    def files(self, table: str) -> list[Path]:
        """Return every complete file of a table, ascending; typed files only of exported ranges."""
        exported = set(self.ranges_of(HISTORY))
        return [
            self.path / table / found.file_name
            for found in sorted(self.ranges_of(table))
            if found in exported
        ]

    def remove_unfinished(self) -> list[str]:
        """Remove the files of an interrupted export and return their names.

        These are temporary files, and typed files whose range has no history.
        """
        exported = set(self.ranges_of(HISTORY))
        removed = []
        for table in TABLES:
            folder = self.path / table
            with _named_errors(folder):
                for entry in sorted(folder.iterdir()):
                    found = parse_range(entry.name)
                    is_orphan = table in TYPED_TABLES and found is not None
                    if entry.name.startswith("_") or (is_orphan and found not in exported):
                        entry.unlink()
                        removed.append(f"{table}/{entry.name}")
        return removed

    def temporary(self, table: str) -> Path:
        """Return the temporary path for a table's part of the current range."""
        return self.path / table / "_unfinished.parquet"

    def commit(self, exported: ExportedRange, temporaries: Mapping[str, Path]) -> None:
        """Make written files part of the export: typed tables first, ``history`` last.

        Durability: after a crash at any point, either the whole range is exported or, once
        ``remove_unfinished`` has run, none of it.

        Raises:
            StorageError: A file could not be synced or renamed; the range may be exported.
        """
        for path in temporaries.values():
            _sync(path)
        order = [table for table in TYPED_TABLES if table in temporaries]
        for table in (*order, HISTORY):
            path = temporaries[table]
            if table == HISTORY:
                for typed in order:
                    _sync(self.path / typed)
            with _named_errors(path):
                path.replace(path.with_name(exported.file_name))
        _sync(self.path / HISTORY)

    def put_back(self, exported: ExportedRange, table: str) -> None:
        """Make the temporary file of a typed table part of a range that is exported already.

        Raises:
            StorageError: The file could not be synced or renamed.
        """
        path = self.temporary(table)
        _sync(path)
        with _named_errors(path):
            path.replace(path.with_name(exported.file_name))
        _sync(path.parent)


def _sync(path: Path) -> None:
    with _named_errors(path):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


@contextmanager
def _named_errors(path: Path, what: str = "write") -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StorageError(f"cannot {what} the export: {reason_of(error)}", path) from error
