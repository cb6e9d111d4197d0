"""Where files go that can be made again."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path


def cache_folder(environment: Mapping[str, str]) -> Path:
    """Return the folder for small files that can be recreated (XDG base directories)."""
    base = environment.get("XDG_CACHE_HOME")
    return (Path(base) if base else Path.home() / ".cache") / "quorate"
