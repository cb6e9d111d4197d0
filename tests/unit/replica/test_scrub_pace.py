"""Reading one's own files slowly: the pace, small pieces, stopping, and how long to wait."""

from __future__ import annotations

from pathlib import Path

import pytest

from quorate.config.sections import ScrubConfig
from quorate.replica.paced_files import CHUNK_BYTES, Pace, PacedFiles, PacedStop
from quorate.server.scrubber import pause_s
from quorum.errors import QuorumUsageError
from simulation.memory_filesystem import MemoryFileSystem

PATH = Path("/data/file")
HOUR_MS = 3_600_000


class StoppedClock:
    """A clock that advances only while ``PacedFiles`` waits."""

    def __init__(self) -> None:
        self.now_s = 100.0
        self.waits: list[float] = []

    def __call__(self) -> float:
        return self.now_s


def paced(
    data: bytes, rate: int, monkeypatch: pytest.MonkeyPatch
) -> tuple[PacedFiles, StoppedClock]:
    """Files with ``data`` in one of them; without a pace for a rate of 0."""
    fs = MemoryFileSystem()
    fs.make_directory(PATH.parent)
    file = fs.open(PATH, create=True, writable=True)
    file.append(data)
    clock = StoppedClock()
    files = PacedFiles(fs, Pace(rate, clock) if rate else None)
    stopped = files._stopped

    def wait(seconds: float) -> bool:
        clock.waits.append(seconds)
        clock.now_s += seconds
        return stopped.is_set()

    monkeypatch.setattr(stopped, "wait", wait)
    return files, clock


def test_a_pace_keeps_the_rate_and_saves_nothing_up() -> None:
    clock = StoppedClock()
    pace = Pace(1000, clock)
    assert pace.wait_s(500) == 0
    assert pace.wait_s(500) == pytest.approx(0.5)
    clock.now_s += 0.2
    assert pace.wait_s(1000) == pytest.approx(0.8)
    # Idle for long: the next reads are not let through all at once.
    clock.now_s += 99
    assert pace.wait_s(500) == 0
    assert pace.wait_s(500) == pytest.approx(0.5)


def test_without_a_pace_nothing_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Goal: no pauses while a caller waits for the result. Method: 16 chunks without a pause."""
    files, clock = paced(bytes(CHUNK_BYTES * 16), 0, monkeypatch)
    assert len(files.open(PATH).read_at(0, CHUNK_BYTES * 16)) == CHUNK_BYTES * 16
    assert clock.waits == [0] * 16


def test_a_large_read_is_many_small_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    data = bytes(range(256)) * 1024
    files, clock = paced(data, 128 << 10, monkeypatch)
    file = files.open(PATH)
    assert file.read_at(1, len(data)) == data[1:]
    assert files.read_bytes == len(data) - 1
    assert len(clock.waits) == len(data) // CHUNK_BYTES
    assert clock.now_s == pytest.approx(100 + (len(data) - CHUNK_BYTES) / (128 << 10))
    assert file.read_at(len(data), 10) == b""


@pytest.mark.parametrize("rate", [0, 1 << 20])
def test_it_stops_between_two_pieces(monkeypatch: pytest.MonkeyPatch, rate: int) -> None:
    files, _ = paced(bytes(CHUNK_BYTES * 4), rate, monkeypatch)
    files.stop()
    with pytest.raises(PacedStop):
        files.open(PATH).read_at(0, CHUNK_BYTES * 4)
    assert files.read_bytes == 0


def test_nothing_can_be_changed_through_it(monkeypatch: pytest.MonkeyPatch) -> None:
    files, _ = paced(b"data", 1, monkeypatch)
    file = files.open(PATH)
    for change in (
        lambda: files.open(PATH, writable=True),
        lambda: files.open(PATH, create=True),
        lambda: files.rename(PATH, PATH),
        lambda: files.unlink(PATH),
        lambda: files.make_directory(PATH),
        lambda: files.sync_directory(PATH),
        lambda: file.append(b"x"),
        lambda: file.write_at(0, b"x"),
        lambda: file.truncate(0),
        file.sync,
    ):
        with pytest.raises(QuorumUsageError):
            change()


@pytest.mark.parametrize(
    ("share", "is_first", "has_findings", "hours"),
    [
        (0.0, False, False, 12),
        (0.5, False, False, 18),
        (0.0, True, False, 0.5),
        (1.0, True, True, 1),
        (1.0, False, True, 1 / 6),
    ],
)
def test_when_the_next_pass_begins(
    share: float, is_first: bool, has_findings: bool, hours: float
) -> None:
    config = ScrubConfig(pause_ms=24 * HOUR_MS)
    seconds = pause_s(config, share, is_first=is_first, has_findings=has_findings)
    assert seconds == pytest.approx(hours * 3600)


def test_a_short_pause_stays_short() -> None:
    config = ScrubConfig(pause_ms=2000)
    assert pause_s(config, 1.0, is_first=True, has_findings=False) == 2
    assert ScrubConfig(pause_ms=0).problems()
    assert ScrubConfig(bytes_per_second=-1).problems()
    assert ScrubConfig(bytes_per_second=0).problems() == []
