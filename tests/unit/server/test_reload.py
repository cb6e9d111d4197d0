"""SIGHUP: what changes, what is only named, and what a broken file does."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from quorate.config.load import load_config
from quorate.server.reload import Reload


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    """The root logger's level is the process's: give it back."""
    before = logging.getLogger().level
    yield
    logging.getLogger().setLevel(before)


def configured(path: Path, text: str) -> Path:
    path.write_text(f'[node]\nid = 1\ndata_dir = "data"\n{text}')
    return path


def test_the_level_changes_and_the_rest_is_named(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Goal: a change without effect is reported. Method: one of each kind."""
    path = configured(tmp_path / "node.toml", "")
    reload = Reload(load_config(path), lambda: load_config(path))
    configured(path, '[logging]\nlevel = "debug"\n[quorum]\nfetch_timeout_ms = 1234\n')
    reload()
    assert logging.getLogger().level == logging.DEBUG
    assert "level=debug need_a_restart=quorum.fetch_timeout_ms" in caplog.text
    # Back again: nothing differs from what the node runs with.
    configured(path, '[logging]\nlevel = "warning"\n')
    reload()
    assert logging.getLogger().level == logging.WARNING
    assert "level=warning need_a_restart=none" in caplog.text


@pytest.mark.parametrize("text", ["[logging]\nlevel = 7\n", "[quorm]\na = 1\n", "[[["])
def test_a_mistake_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, text: str
) -> None:
    """Goal: a typo never harms a running node. Method: values, keys and syntax that are wrong."""
    path = configured(tmp_path / "node.toml", "")
    reload = Reload(load_config(path), lambda: load_config(path))
    logging.getLogger().setLevel(logging.INFO)
    configured(path, text)
    reload()
    assert logging.getLogger().level == logging.INFO
    assert "event=reload_refused" in caplog.text


def test_a_file_that_is_gone_changes_nothing(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """Goal: the same without a file. Method: it was removed."""
    path = configured(tmp_path / "node.toml", "")
    reload = Reload(load_config(path), lambda: load_config(path))
    path.unlink()
    reload()
    assert "event=reload_refused" in caplog.text
