"""The findings and repairs of opening the data directory, as log lines and metrics."""

from __future__ import annotations

import logging

from metrics.observer import Observer
from quorate.replica.boot import BootReport
from quorum.log.layout import side_file_kind

_log = logging.getLogger(__name__)


def count_boot(observer: Observer, report: BootReport, seconds: float) -> None:
    """Count every file that was quarantined or rewritten. ``seconds``: the duration of the
    opening.
    """
    if report.loaded_snapshot is not None:
        observer.snapshot_load_took(seconds)
    for _ in report.corrupt_snapshots:
        observer.file_quarantined("checkpoint")
        observer.snapshot_failed("load")
    if report.recovery.restored_start:
        observer.file_quarantined("log-start")
    for _, loss in report.losses:
        for _ in loss.segments:
            observer.file_quarantined("segment")
    for name in report.repaired:
        observer.file_repaired(side_file_kind(name))
    if report.download is not None and report.download.damage:
        observer.file_repaired("checkpoint.part")


def log_boot(report: BootReport) -> None:
    """Write one line for everything that was found and done."""
    recovery = report.recovery
    _log.info(
        "event=log_opened start=%s end=%s high_watermark=%d segments=%d bytes=%d torn_bytes=%d",
        recovery.start, recovery.end, recovery.high_watermark, recovery.scanned_segments,
        recovery.scanned_bytes, recovery.torn_bytes,
    )  # fmt: skip
    if recovery.torn_bytes:
        _log.warning("event=torn_tail_cut bytes=%d cause=%s", recovery.torn_bytes,
                     recovery.torn_cause)  # fmt: skip
    if recovery.restored_start:
        _log.error("event=log_start_restored start=%s cause=%s", recovery.start,
                   recovery.restored_start)  # fmt: skip
    for damage, loss in report.losses:
        _log.error(
            "event=log_damaged error=%s first_lost_offset=%d vote_floor=%s segments_set_aside=%s",
            damage, loss.first_offset, loss.end, list(loss.segments),
        )  # fmt: skip
    for name in report.repaired:
        _log.warning("event=side_file_repaired file=%s", name)
    if report.removed:
        _log.info("event=leftovers_removed files=%s", list(report.removed))
    found = report.download
    if found is not None:
        _log.info("event=download_found snapshot=%s kept_bytes=%d cut_bytes=%d", found.snapshot_id,
                  found.size_bytes, found.cut_bytes)  # fmt: skip
        if found.damage:
            _log.warning("event=download_repaired snapshot=%s kept_bytes=%d cause=%s",
                         found.snapshot_id, found.size_bytes, found.damage)  # fmt: skip
    for snapshot_id, cause in report.corrupt_snapshots:
        _log.error("event=checkpoint_quarantined snapshot=%s cause=%s", snapshot_id, cause)
    if report.loaded_snapshot is not None:
        _log.info("event=checkpoint_loaded snapshot=%s", report.loaded_snapshot)
