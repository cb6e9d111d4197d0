"""Finds Prometheus' promtool; tests that need it are skipped where it is not installed."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

_FETCHED = Path(__file__).resolve().parents[2] / ".venv" / "promtool" / "usr" / "bin"
"""``.ci/promtool`` installs it here if the system has none."""
PROMTOOL = shutil.which("promtool") or shutil.which("promtool", path=_FETCHED)


def promtool(*arguments: str, page: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Run promtool with ``page`` as its input."""
    assert PROMTOOL is not None
    return subprocess.run([PROMTOOL, *arguments], input=page, capture_output=True, check=False)
