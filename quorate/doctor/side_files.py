"""The side files of a node's log, read by the same code as at the node's start.

A check fails if a start would refuse the file or quarantine part of the log because of it. It warns
if a start would rewrite the file or ignore it. Read-only; the node may be running.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

from quorate.doctor.finding import CheckResult, Finding
from quorate.replica.stale_quorum_state import check_newest
from quorum.errors import (
    ElectionStateError,
    IdentityError,
    LogDamagedError,
    StorageError,
)
from quorum.log.digest_file import read_digest_file
from quorum.log.election_store import ElectionFile
from quorum.log.epoch_file import EpochFile
from quorum.log.high_watermark_file import damaged_watermark_files, load_watermarks
from quorum.log.identity import check_partition_metadata
from quorum.log.layout import (
    DIGEST_SUFFIX,
    EPOCH_FILE_NAME,
    LOG_START_NAME,
    PARTITION_METADATA_NAME,
    QUARANTINED_NAME,
    QUORUM_STATE_NAME,
    WATERMARK_NAME,
    WATERMARK_NAMES,
    parse_segment_name,
    segment_bases,
    segment_path,
)
from quorum.log.log_start_file import LogStartFile
from quorum.log.quarantine_mark_file import read_quarantine_mark
from quorum.ports import FileSystem
from quorum.types import Uuid

_SEE_ELECTION = "see docs/operations/recover.md, section Election-state"
_SEE_DAMAGE = "see docs/operations/recover.md, section Damage"
_REBUILT = "nothing to do: the next start writes it anew from the log"


def examine_side_files(fs: FileSystem, directory: Path, owner: Uuid) -> Iterator[Finding]:
    """One finding for each side file of the partition directory of the disk ``owner``."""
    checks: tuple[tuple[str, Callable[[FileSystem, Path], Finding]], ...] = (
        (QUORUM_STATE_NAME, lambda fs, directory: _election(fs, directory, owner)),
        (PARTITION_METADATA_NAME, _partition_metadata),
        (LOG_START_NAME, _log_start),
        (WATERMARK_NAME, lambda fs, directory: _watermarks(fs, directory, owner)),
        (EPOCH_FILE_NAME, _epochs),
        (QUARANTINED_NAME, _quarantined_log),
        ("digests", _digests),
    )
    for name, check in checks:
        try:
            yield check(fs, directory)
        except StorageError as error:
            yield Finding(name, CheckResult.FAILED, str(error), "check owner, mode and the disk")


def _election(fs: FileSystem, directory: Path, owner: Uuid) -> Finding:
    file = ElectionFile(fs, directory, owner)
    if not file.exists():
        return Finding(QUORUM_STATE_NAME, CheckResult.FAILED, "missing; no start without it",
                       _SEE_ELECTION)  # fmt: skip
    finding = _election_once(fs, directory, file, owner)
    # Beside a running node the epoch may have risen between its two files: look twice.
    return (
        finding
        if finding.check_result is CheckResult.OK
        else _election_once(fs, directory, file, owner)
    )


def _election_once(fs: FileSystem, directory: Path, file: ElectionFile, owner: Uuid) -> Finding:
    try:
        state = file.load()
        check_newest(fs, directory, state, owner)
    except ElectionStateError as error:
        return Finding(QUORUM_STATE_NAME, CheckResult.FAILED, str(error), _SEE_ELECTION)
    return Finding(QUORUM_STATE_NAME, CheckResult.OK, f"epoch {state.epoch}")


def _partition_metadata(fs: FileSystem, directory: Path) -> Finding:
    try:
        is_there = check_partition_metadata(fs, directory)
    except IdentityError as error:
        return Finding(PARTITION_METADATA_NAME, CheckResult.FAILED, str(error), _SEE_DAMAGE)
    seen = "the metadata topic" if is_there else "none yet"
    return Finding(PARTITION_METADATA_NAME, CheckResult.OK, seen)


def _log_start(fs: FileSystem, directory: Path) -> Finding:
    try:
        stored = LogStartFile(fs, directory).load()
    except LogDamagedError as error:
        return Finding(LOG_START_NAME, CheckResult.FAILED, str(error), _SEE_DAMAGE)
    if stored is None:
        return Finding(LOG_START_NAME, CheckResult.OK, "none, so offset 0")
    unfinished = "; a replacement by this checkpoint is unfinished" if stored.is_replacing else ""
    return Finding(LOG_START_NAME, CheckResult.OK, f"{stored.start}{unfinished}")


def _watermarks(fs: FileSystem, directory: Path, owner: Uuid) -> Finding:
    names = [name for name in WATERMARK_NAMES if fs.exists(directory / name)]
    if not names and not segment_bases(fs.list_directory(directory)):
        return Finding(WATERMARK_NAME, CheckResult.OK, "none yet")
    marks = load_watermarks(fs, directory, owner)
    if marks is None:
        return Finding(
            WATERMARK_NAME,
            CheckResult.FAILED,
            "neither it nor its copy is intact, so nothing says how far the log was on disk",
            "start the node beside the others: until its leader has brought it up it elects nobody",
        )
    seen = f"committed below {marks.high_watermark}, on disk below {marks.durable_offset}"
    damaged = damaged_watermark_files(fs, directory, owner)
    damaged += tuple(name for name in WATERMARK_NAMES if name not in names)
    if damaged:
        return Finding(
            WATERMARK_NAME,
            CheckResult.WARNING,
            f"{seen}; missing or damaged: {', '.join(damaged)}",
            "nothing to do: the next start writes it anew from the other one",
        )
    return Finding(WATERMARK_NAME, CheckResult.OK, seen)


def _epochs(fs: FileSystem, directory: Path) -> Finding:
    file = EpochFile(fs, directory)
    if not fs.exists(file.path):
        return Finding(EPOCH_FILE_NAME, CheckResult.OK, "none yet")
    stored = file.load()
    if stored is None:
        return Finding(EPOCH_FILE_NAME, CheckResult.WARNING, "malformed", _REBUILT)
    return Finding(EPOCH_FILE_NAME, CheckResult.OK, f"{len(stored)} epochs")


def _quarantined_log(fs: FileSystem, directory: Path) -> Finding:
    try:
        stored = read_quarantine_mark(fs, directory)
    except LogDamagedError as error:
        return Finding(QUARANTINED_NAME, CheckResult.FAILED, str(error), _SEE_DAMAGE)
    if stored is None:
        return Finding(QUARANTINED_NAME, CheckResult.OK, "nothing")
    seen = f"from offset {stored.offset} on: {stored.cause}"
    return Finding(QUARANTINED_NAME, CheckResult.FAILED, seen, _SEE_DAMAGE)


def _digests(fs: FileSystem, directory: Path) -> Finding:
    bases = [parse_segment_name(name, DIGEST_SUFFIX) for name in fs.list_directory(directory)]
    found = [base for base in bases if base is not None]
    # A file that a running node removes meanwhile is not damaged.
    damaged = [
        path.name
        for base in found
        if read_digest_file(fs, directory, base) is None
        and fs.exists(path := segment_path(directory, base, DIGEST_SUFFIX))
    ]
    if damaged:
        return Finding("digests", CheckResult.WARNING, f"damaged: {', '.join(damaged)}", _REBUILT)
    return Finding("digests", CheckResult.OK, f"{len(found)} files")
