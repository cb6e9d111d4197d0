"""A file system for server processes whose data directory never finishes opening.

``OPENING`` appears beside the data directory when a server has reached its log and blocks there.
"""

from __future__ import annotations

import time
from pathlib import Path

from quorum.log.filesystem import OsFile, OsFileSystem

NAME = "tests.integration.slow_opening:SlowOpening"
OPENING = "opening"
_POLL_SECONDS = 0.01


class SlowOpening(OsFileSystem):
    """The log is never opened: only a signal ends it."""

    def open(self, path: Path, *, create: bool = False, writable: bool = False) -> OsFile:
        if path.suffix == ".log":
            (path.parents[2] / OPENING).touch()
            while True:
                time.sleep(_POLL_SECONDS)
        return super().open(path, create=create, writable=writable)
