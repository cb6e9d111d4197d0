"""Broken replicas that trust a disk although a sync or a check is missing."""

from __future__ import annotations

from pathlib import Path

from quorate.replica import boot, unknown_end
from quorum.errors import StorageError
from quorum.log import election_store, high_watermark_file, layout, recovery
from quorum.log.chain import ChainOpener
from quorum.log.high_watermark_file import Watermarks
from quorum.log.segmented_log import SegmentedLog
from quorum.ports import FileSystem
from quorum.types import ZERO_UUID, Uuid
from simulation.options import Options
from snapshot.naming import FileState, file_name
from snapshot.writer import PartFile
from tests.simulation.zoo.bug import Bug, Patch


def failed_sync_retried(patch: Patch) -> None:
    """A log whose sync failed syncs again and reports the records as durable."""
    flush = SegmentedLog.flush

    def flush_again(log: SegmentedLog) -> None:
        try:
            flush(log)
        except StorageError:
            log._failure.cause = ""
            flush(log)

    patch.setattr(SegmentedLog, "flush", flush_again)


def checkpoint_renamed_before_sync(patch: Patch) -> None:
    """A checkpoint gets its final name before its content is on disk."""

    def seal(part: PartFile, state: FileState = FileState.SEALED) -> Path:
        part._opened().close()
        part._file = None
        final = part._directory / file_name(part.snapshot_id, state)
        part._fs.rename(part.path, final)
        part._has_left = True
        part._fs.sync_directory(part._directory)
        return final

    patch.setattr(PartFile, "seal", seal)


def checksum_not_checked(patch: Patch) -> None:
    """The checksum of ``quorum-state`` is read but not compared."""

    def unseal(data: bytes) -> str:
        return data.partition(b"\n")[0].decode()

    patch.setattr(election_store, "unseal", unseal)


def log_cut_to_the_stored_high_watermark(patch: Patch) -> None:
    """A starting replica truncates its log to the stored high watermark."""
    open_log = recovery.open_log

    def open_and_cut(*arguments: object, **options: object) -> tuple[SegmentedLog, object]:
        log, report = open_log(*arguments, **options)  # type: ignore[arg-type]
        if log.start.offset <= log.high_watermark < log.end.offset:
            log.truncate_to(log.high_watermark)
        return log, report

    patch.setattr(boot, "open_log", open_and_cut)


def unknown_mark_is_zero(patch: Patch) -> None:
    """If neither copy of the durable mark is intact, nothing counts as acknowledged."""
    load = unknown_end.load_watermarks

    def load_or_zero(fs: FileSystem, directory: Path, owner: Uuid) -> Watermarks:
        return load(fs, directory, owner) or Watermarks()

    patch.setattr(unknown_end, "load_watermarks", load_or_zero)


def mark_kept_once(patch: Patch) -> None:
    """The durable mark is kept in one file; if that is damaged, the log counts as empty."""
    unknown_mark_is_zero(patch)
    for module in (high_watermark_file, layout):
        patch.setattr(module, "WATERMARK_NAMES", (layout.WATERMARK_NAME,))


def mark_of_another_disk(patch: Patch) -> None:
    """A durable mark is accepted although it belongs to another disk."""
    decode = high_watermark_file._decode

    def decode_any(data: bytes, owner: Uuid) -> object:
        return decode(data, ZERO_UUID)

    patch.setattr(high_watermark_file, "_decode", decode_any)


def repaired_without_a_word(patch: Patch) -> None:
    """Side files that a start rewrites are not reported."""
    open_log = recovery.open_log

    def open_in_silence(*arguments: object, **options: object) -> tuple[SegmentedLog, object]:
        return open_log(*arguments, **{**options, "rebuilt": []})  # type: ignore[arg-type]

    patch.setattr(boot, "open_log", open_in_silence)


def unproven_epochs_believed(patch: Patch) -> None:
    """Epochs that no stored digest covers are compared with nothing."""
    patch.setattr(ChainOpener, "_check_unproven_epochs", lambda _self, _epoch_max: None)


BUGS = (
    Bug(
        "failed-sync-retried",
        failed_sync_retried,
        ("durable-survives", "no-crash"),
        "fsyncgate; PostgreSQL, 2018",
        seeds=1_000,
        options=Options("disk"),
    ),
    Bug(
        "checkpoint-renamed-before-sync",
        checkpoint_renamed_before_sync,
        ("durable-survives", "no-crash", "log-start-covered", "damage-imagined"),
        "ext4 zero-length files, 2009; ALICE (OSDI 14)",
        seeds=1_000,
    ),
    Bug(
        "checksum-not-checked",
        checksum_not_checked,
        ("damage-detected", "no-crash"),
        "NATS JetStream 2.12.1 (Jepsen): one flipped bit",
        seeds=1_000,
    ),
    Bug(
        "log-cut-to-the-stored-high-watermark",
        log_cut_to_the_stored_high_watermark,
        ("durable-survives",),
        "KAFKA-1211; KIP-101",
    ),
    Bug(
        "unknown-mark-is-zero",
        unknown_mark_is_zero,
        ("leader-completeness", "committed-stays", "losses-known"),
        "ADR 39; found from outside",
        options=Options("files"),
    ),
    Bug(
        "mark-kept-once",
        mark_kept_once,
        ("leader-completeness", "committed-stays", "losses-known"),
        "ADR 39; found from outside: attack 12",
        options=Options("files"),
    ),
    Bug(
        "mark-of-another-disk",
        mark_of_another_disk,
        ("no-crash", "leader-completeness", "damage-imagined", "damage-reported"),
        "ADR 39",
        options=Options("files"),
    ),
    Bug(
        "repaired-without-a-word",
        repaired_without_a_word,
        ("damage-reported",),
        "found from outside: 101 of 368 damages repaired without a report",
        options=Options("files"),
    ),
    Bug(
        "unproven-epochs-believed",
        unproven_epochs_believed,
        ("log-matching",),
        "found by seed 1913 of the profile files",
        options=Options("files"),
    ),
)
