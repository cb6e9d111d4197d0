"""A directory on a disk that records every step, and a clock that does not move."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorum.log.filesystem import OsFileSystem
from tests.support.recording_filesystem import RecordingFileSystem


class StandingClock:
    def __init__(self) -> None:
        self.now = 1000

    def now_ms(self) -> int:
        return self.now

    def wall_ms(self) -> int:
        raise AssertionError("checkpoints know no wall clock")


@pytest.fixture
def clock() -> StandingClock:
    return StandingClock()


@pytest.fixture
def fs() -> RecordingFileSystem:
    return RecordingFileSystem(OsFileSystem())


@pytest.fixture
def directory(tmp_path: Path) -> Path:
    return tmp_path
