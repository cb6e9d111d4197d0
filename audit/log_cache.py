"""Rows of a log that were made for an earlier question, so that the next one need not replay it.

Replaying a log takes 25 microseconds per record; reading its rows from Parquet files takes next to
nothing. The rows are kept below the user's cache folder, one folder per log and group of tables,
and one folder inside that per range of offsets:
``<log>/<group>/<from>-<to>-<log digest at to>/<table>.parquet``.

Invariants:
    1. Only committed rows are kept, and only with the log digest at their end. They are used while
       the log has this digest at this offset; else they are removed and made again.
    2. Rows are those that ``read_tables`` makes of the same plan: if the log start moves, the
       baseline is another one, and so is the folder.
    3. A folder with its final name is complete. Losing any of it costs time only.
"""

from __future__ import annotations

import hashlib
import multiprocessing
import re
import shutil
import signal
import sys
import tempfile
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq

from audit.arrow_schema import arrow_schema
from audit.plan import ReadPlan
from audit.reader import read_tables
from audit.schema import HISTORY, PARTITIONS, TYPED_TABLES
from audit.segment_file import digest_at
from audit.splits import ALL_ROWS, splits
from quorum.types import DigestAt

LOGS_MAX = 4
"""Most logs whose rows are kept; the one that was asked about longest ago is removed."""
STOP_SECONDS_MAX = 2.0
"""Seconds that a second process may take to end when it is no longer needed."""
OFFSETS_CUT_MIN = 50_000
"""So many offsets are worth a second process."""
RANGES_MAX = 8
"""From so many ranges on, their files are put together."""
_FORM = "2"
"""Changes when rows are made differently while their columns stay the same."""
_NAME = re.compile(r"([0-9]{20})-([0-9]{20})-([0-9a-f]+)")
_GROUPS: dict[str, tuple[str, ...]] = {
    PARTITIONS: (PARTITIONS,),
    "others": tuple(table for table in TYPED_TABLES if table != PARTITIONS),
    HISTORY: (HISTORY,),
}
"""Tables that are made together. Without partitions a replay takes a fifth; ``history`` takes twice
the time of partitions."""


class _Range(NamedTuple):
    start: int
    end: int
    path: Path


class LogCache:
    """The rows of one log. Several processes may use it at once."""

    def __init__(self, folder: Path, plan: ReadPlan, *, processes: int = 1) -> None:
        """``folder`` is for all logs; it is created with access for its owner only.

        Up to two ``processes`` make rows of a long log. The second one loads the main module of
        this one again, so a script that asks for two must do its work under a guard.
        """
        self._folder = folder
        self._plan = plan
        self._processes = processes
        baseline = plan.baseline
        parts = [
            _FORM, str(Path(plan.source).resolve()), plan.cluster_id, str(plan.start_offset),
            "" if baseline is None else Path(baseline.path).name,
            *(str(arrow_schema(table)) for tables in _GROUPS.values() for table in tables),
        ]  # fmt: skip
        self._log = folder / hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]

    def has_some(self, table: str) -> bool:
        """Whether rows of a table were kept by an earlier question, if not all of them."""
        group = next(name for name, members in _GROUPS.items() if table in members)
        try:
            return bool(self._known(self._log / group, _GROUPS[group], self._plan.first_offset))
        except (OSError, pa.ArrowException):
            return False

    def files(self, tables: Collection[str]) -> dict[str, list[Path]] | None:
        """Return files with all rows of these tables; replay what is missing, and keep it.

        None if nothing can be kept: the log has no digest, its plan has records that are not
        known to be committed or ends at damage, or the folder cannot be written.

        Raises:
            LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As
                ``read_tables``.
        """
        plan = self._plan
        if plan.damage or plan.end_offset > plan.committed_offset:
            return None
        end = DigestAt(plan.end_offset, plan.end_digest or digest_at(plan, plan.end_offset))
        if not end.value:
            return None
        found: dict[str, list[Path]] = {}
        for group, members in _GROUPS.items():
            wanted = [table for table in members if table in tables]
            if not wanted:
                continue
            try:
                self._log.mkdir(mode=0o700, parents=True, exist_ok=True)
                ranges = self._complete(self._log / group, members, end)
            except (OSError, pa.ArrowException):
                return None
            for table in wanted:
                found[table] = [each.path / f"{table}.parquet" for each in ranges]
        self._remove_oldest()
        return found

    def _complete(self, folder: Path, tables: tuple[str, ...], end: DigestAt) -> list[_Range]:
        """Return ranges that follow one another up to ``end``, that of the plan."""
        plan, first = self._plan, self._plan.first_offset
        ranges = self._known(folder, tables, first)
        done = ranges[-1].end if ranges else first
        if done < end.offset:
            missing = [
                _Range(start, mark.offset, folder / _named(start, mark))
                for start, mark in _cut(plan, done, end, self._processes)
            ]
            with _second_process(plan, tables, missing[1:]) as was_helped:
                _make(plan, tables, missing[0])
                if not was_helped():
                    for each in missing[1:]:
                        _make(plan, tables, each)
            ranges += missing
        if len(ranges) >= RANGES_MAX:
            whole = {table: _whole(ranges, table) for table in tables}
            merged = _Range(first, end.offset, folder / _named(first, end))
            _keep(merged, whole)
            for each in ranges:
                shutil.rmtree(each.path, ignore_errors=True)
            ranges = [merged]
        return ranges

    def _known(self, folder: Path, tables: tuple[str, ...], first: int) -> list[_Range]:
        """Return kept ranges of this log, from ``first`` on without a gap; remove those of others.

        Of two that begin at the same offset, the longer one counts.
        """
        plan = self._plan
        # Most ranges end at a mark; for others the log is read up to there.
        marked = {mark.offset: mark.value for mark in plan.marks}
        by_start: dict[int, _Range] = {}
        for path in sorted(folder.iterdir()) if folder.is_dir() else []:
            name = _NAME.fullmatch(path.name)
            if name is None:
                continue
            start, end = int(name[1]), int(name[2])
            if end > plan.end_offset:
                # Another process saw more of the log; or the log was cut.
                continue
            digest = marked.get(end) or digest_at(plan, end)
            if digest.hex() != name[3] or not _is_whole(path, tables):
                shutil.rmtree(path, ignore_errors=True)
                continue
            if start not in by_start or by_start[start].end < end:
                by_start[start] = _Range(start, end, path)
        ranges: list[_Range] = []
        while first in by_start:
            ranges.append(by_start[first])
            first = ranges[-1].end
        return ranges

    def _remove_oldest(self) -> None:
        with suppress(OSError):
            self._log.touch()
            logs = sorted(self._folder.iterdir(), key=lambda path: path.stat().st_mtime)
            for path in logs[:-LOGS_MAX]:
                shutil.rmtree(path, ignore_errors=True)


def _named(start: int, end: DigestAt) -> str:
    return f"{start:020d}-{end.offset:020d}-{end.value.hex()}"


def _cut(plan: ReadPlan, start: int, end: DigestAt, processes: int) -> list[tuple[int, DigestAt]]:
    """Cut [start, end) into ranges for processes: where each begins and ends.

    Both cost the same, with what the second one replays first. A short log is not cut: it would
    take longer to start a process.
    """
    baseline = plan.baseline
    begin = max(start, plan.start_offset if baseline is None else baseline.end_offset)
    if processes > 1 and end.offset - begin >= OFFSETS_CUT_MIN:
        _, wanted = splits(plan, start, end.offset, 2, ALL_ROWS)[0]
        inside = [each for each in plan.marks if begin < each.offset <= wanted]
        if inside:
            return [(start, inside[-1]), (inside[-1].offset, end)]
    return [(start, end)]


@contextmanager
def _second_process(
    plan: ReadPlan, tables: tuple[str, ...], made: Sequence[_Range]
) -> Iterator[Callable[[], bool]]:
    """Let another process make these ranges; if there are none, none is started.

    Yields a function that waits for it, and returns whether it made them. If not, as for want of
    memory, or because the log is damaged there, they are to be made here.
    """
    if not made:
        yield lambda: True
        return
    other = multiprocessing.get_context("spawn").Process(
        target=_make_quietly, args=(plan, tables, made), daemon=True
    )
    try:
        other.start()
    except (OSError, AssertionError):  # No room for it; or this one is a pool's, which may not.
        yield lambda: False
        return

    def wait() -> bool:
        other.join()
        return other.exitcode == 0

    try:
        yield wait
    finally:
        # It removes what it has begun. If it is in the middle of a file, it is not waited for.
        other.terminate()
        other.join(STOP_SECONDS_MAX)
        other.kill()
        other.join()


def _make_quietly(plan: ReadPlan, tables: tuple[str, ...], made: Sequence[_Range]) -> None:
    """Make ranges in a process of their own. Its exit code says whether it did."""
    # An interruption is the business of the one that waits.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))
    try:
        for each in made:
            _make(plan, tables, each)
    except Exception:  # noqa: BLE001 - the one that waits makes them, and reports what is wrong
        sys.exit(1)


def _make(plan: ReadPlan, tables: tuple[str, ...], made: _Range) -> None:
    _keep(made, read_tables(plan, tables, made.start, made.end))


def _is_whole(path: Path, tables: tuple[str, ...]) -> bool:
    """Return whether every file can be opened: its footer, at the end, is there."""
    try:
        for table in tables:
            pq.read_metadata(path / f"{table}.parquet")
    except (OSError, pa.ArrowException):
        return False
    return True


def _whole(ranges: list[_Range], table: str) -> pa.Table:
    return pa.concat_tables(pq.read_table(each.path / f"{table}.parquet") for each in ranges)


def _keep(made: _Range, rows: dict[str, pa.Table]) -> None:
    """Write the rows and give their folder its name at the end."""
    folder = made.path.parent
    folder.mkdir(mode=0o700, exist_ok=True)
    temporary = Path(tempfile.mkdtemp(prefix="_", dir=folder))
    try:
        for table, content in rows.items():
            pq.write_table(content, temporary / f"{table}.parquet", compression="zstd")
        try:
            temporary.rename(made.path)
        except OSError:
            # Another process made the same one.
            if not made.path.is_dir():
                raise
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
