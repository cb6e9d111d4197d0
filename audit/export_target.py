"""Where an export may not be written: into what a node owns."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from audit.errors import ExportTargetError
from quorum.log.layout import META_PROPERTIES_NAME, partition_directory


def check_target(source: Path, target: Path) -> None:
    """Refuse a folder that is in or around a node's data directory, or in what is exported.

    A node's directory is for the node alone: its checks, its backups and its free space count
    every file there.

    Raises:
        ExportTargetError: The folder is one of these; the message says which.
    """
    place, read = target.resolve(), source.resolve()
    around = (place, *place.parents)
    if read.is_dir() and read in around:
        raise _refused(target, f"it is in {source}, which is exported")
    owner = next((folder for folder in around if is_data_directory(folder)), None)
    if owner is not None:
        raise _refused(target, f"{owner} is a node's data directory")
    with suppress(OSError):
        for folder in place.iterdir():
            if is_data_directory(folder):
                raise _refused(target, f"it holds a node's data directory, {folder.name}")
    if place in read.parents and read.is_dir():
        raise _refused(target, f"it holds {source}, which is exported")


def is_data_directory(folder: Path) -> bool:
    """Whether a node, or a Kafka controller, has its data there."""
    return os.path.isfile(folder / META_PROPERTIES_NAME) or os.path.isdir(  # noqa: PTH112, PTH113
        partition_directory(folder)
    )


def _refused(target: Path, reason: str) -> ExportTargetError:
    return ExportTargetError(f"{target}: no folder for an export: {reason}; name another one")
