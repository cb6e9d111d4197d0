"""Logs with a corrupt byte and without a stored high watermark."""

from __future__ import annotations

import shutil
from pathlib import Path

from quorum.log.layout import WATERMARK_NAMES
from tests.support.audit_log import AuditLog

SAMPLE = Path(__file__).resolve().parents[1] / "data" / "kafka-kraft-log"


def damaged_sample(folder: Path) -> Path:
    """Copy a real controller's directory below ``folder`` and flip one byte."""
    home = folder / "kafka"
    shutil.copytree(SAMPLE, home)
    _flip(home / f"{0:020d}.log", 1500)
    return home


def damage(log: AuditLog) -> Path:
    """Flip a byte in the middle of our log, remove its high watermark; return the segment."""
    for name in WATERMARK_NAMES:
        (log.partition / name).unlink()
    path = next(log.partition.glob("*.log"))
    _flip(path, path.stat().st_size // 2)
    return path


def _flip(path: Path, position: int) -> None:
    data = bytearray(path.read_bytes())
    data[position] ^= 4
    path.write_bytes(data)
