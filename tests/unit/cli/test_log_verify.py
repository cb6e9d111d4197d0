"""``quorate log verify``: an intact log, corruption anywhere in it, and files that are gone."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from quorate.cli.main import main
from quorum.batch import encode_batch
from quorum.log.config import LogConfig
from quorum.log.filesystem import OsFileSystem
from quorum.log.recovery import open_log
from quorum.types import EpochStart

BATCHES = 20


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A closed log of several segments, as a node leaves it."""
    log, _ = open_log(OsFileSystem(), tmp_path, LogConfig(segment_bytes=400))
    for offset in range(BATCHES):
        data = encode_batch([b"v" * 40], base_offset=offset, epoch=1, timestamp=5)
        epochs = (EpochStart(1, 0),) if offset == 0 else ()
        log.append(data, base_offset=offset, end_offset=offset + 1, epochs=epochs)
        log.flush()
    log.store_high_watermark(BATCHES)
    log.close()
    assert len(segments(tmp_path)) > 2
    return tmp_path


def segments(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.log"))


def verified(
    capsys: pytest.CaptureFixture[str], folder: Path
) -> tuple[int, dict[str, object], str]:
    status = main(["log", "verify", str(folder), "-o", "json"])
    captured = capsys.readouterr()
    return status, json.loads(captured.out) if captured.out else {}, captured.err


def test_a_intact_log(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, found, _ = verified(capsys, folder)
    assert status == 0
    assert (found["kind"], found["is_intact"]) == ("LogVerification", True)
    assert (found["end_offset"], found["batches"], found["damaged_offset"]) == (
        BATCHES,
        BATCHES,
        -1,
    )


def test_any_flipped_byte_of_any_segment_ends_with_8(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Goal: header fields that no batch checksum covers are seen as well."""
    for path in segments(folder):
        intact = path.read_bytes()
        for position in range(0, len(intact), 7):
            path.write_bytes(
                intact[:position] + bytes([intact[position] ^ 1]) + intact[position + 1 :]
            )
            status, found, error = verified(capsys, folder)
            assert status == 8, (path.name, position)
            assert found["is_intact"] is False
            assert isinstance(found["damaged_offset"], int)
            assert 0 <= found["damaged_offset"] < BATCHES
            assert "section Damage" in error
        path.write_bytes(intact)


@pytest.mark.parametrize("gone", ["first", "last", "all"])
def test_segments_that_are_gone(
    folder: Path, gone: str, capsys: pytest.CaptureFixture[str]
) -> None:
    every = segments(folder)
    for path in {"first": every[:1], "last": every[-1:], "all": every}[gone]:
        path.unlink()
    status, found, _ = verified(capsys, folder)
    assert status == 8
    assert found["is_intact"] is False


def test_without_marks_the_available_evidence_is_listed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    status, _, error = verified(capsys, tmp_path)
    assert status == 4
    assert "quorate log dump" in error
