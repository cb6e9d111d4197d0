"""Where ``bench/peers/install`` put the other systems and the load programs."""

from __future__ import annotations

import os
from pathlib import Path


def home() -> Path:
    """Return the folder of everything that was installed; it need not exist."""
    named = os.environ.get("QUORATE_BENCH_PEERS")
    if named:
        return Path(named)
    cache = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(cache) / "quorate" / "bench-peers"


def program(name: str) -> Path:
    """Return the path of a program that Go built; it need not exist."""
    return home() / "bin" / name


def has_programs(*names: str) -> bool:
    """Return whether all of these programs were built."""
    return all(program(name).exists() for name in names)


def has_java(name: str) -> bool:
    """Return whether the jars and the load program of a system in Java are there."""
    folder = home() / name
    return (folder / "classes").is_dir() and any(folder.glob("lib/*.jar"))


def class_path(name: str) -> str:
    """Return the class path of a system in Java, its load program included."""
    folder = home() / name
    return f"{folder / 'lib'}/*:{folder / 'classes'}"
