"""Every test of this folder is one of ``make verify``."""

from __future__ import annotations

from pathlib import Path

import pytest

FOLDER = Path(__file__).parent


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Called with the tests of all folders of a run."""
    for item in items:
        if FOLDER in item.path.parents:
            item.add_marker("tidy")
