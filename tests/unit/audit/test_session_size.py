"""Which sources are worth compiling well for."""

from __future__ import annotations

from pathlib import Path

import pytest

from audit.session import LARGE_BYTES, is_large


@pytest.mark.parametrize("size", [LARGE_BYTES - 1, LARGE_BYTES])
def test_one_file_is_measured(tmp_path: Path, size: int) -> None:
    file = sparse(tmp_path / "0.log", size)
    assert is_large(file) == (size >= LARGE_BYTES)


def test_all_files_of_a_folder_count_together(tmp_path: Path) -> None:
    sparse(tmp_path / "0.log", LARGE_BYTES // 2)
    assert not is_large(tmp_path)
    sparse(tmp_path / "deep" / "1.log", LARGE_BYTES // 2)
    assert is_large(tmp_path)


def test_a_file_that_vanishes_counts_for_nothing(tmp_path: Path) -> None:
    (tmp_path / "gone").symlink_to(tmp_path / "nowhere")
    assert not is_large(tmp_path)
    assert not is_large(tmp_path / "nowhere")


def sparse(file: Path, size: int) -> Path:
    file.parent.mkdir(exist_ok=True)
    with file.open("wb") as opened:
        opened.truncate(size)
    return file
