"""Checkpoint files: their names, their bytes, and the directory that holds them.

This package handles positions and record batches; the records' meaning is elsewhere. See DESIGN.md.
"""

from __future__ import annotations

from snapshot.config import SnapshotConfig
from snapshot.format import CheckpointHead, checkpoint_batches
from snapshot.generator import (
    CheckpointGenerator,
    CheckpointRequest,
    CheckpointTrigger,
    SnapshotFigures,
    snapshot_figures,
)
from snapshot.naming import FileState, file_name, parse_name
from snapshot.reader import CheckpointReader
from snapshot.store import DirectorySnapshotStore, QuarantinedFile
from snapshot.verifier import CheckpointSummary, CheckpointVerifier
from snapshot.writer import (
    CheckpointCancelled,
    CheckpointInfo,
    CheckpointProgress,
    write_checkpoint,
)

__all__ = [
    "CheckpointCancelled",
    "CheckpointGenerator",
    "CheckpointHead",
    "CheckpointInfo",
    "CheckpointProgress",
    "CheckpointReader",
    "CheckpointRequest",
    "CheckpointSummary",
    "CheckpointTrigger",
    "CheckpointVerifier",
    "DirectorySnapshotStore",
    "FileState",
    "QuarantinedFile",
    "SnapshotConfig",
    "SnapshotFigures",
    "checkpoint_batches",
    "file_name",
    "parse_name",
    "snapshot_figures",
    "write_checkpoint",
]
