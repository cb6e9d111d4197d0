"""File names in a partition directory.

Segments and their indexes are named as in Kafka, by 20 digits of base offset. Kafka's readers
ignore the names of our own files. See: docs/reference/formats.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from pathlib import Path

from quorum.types import METADATA_PARTITION, METADATA_TOPIC

SEGMENT_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
DIGEST_SUFFIX = ".digest"
DELETED_SUFFIX = ".deleted"
DAMAGED_SUFFIX = ".damaged"
QUORUM_STATE_NAME = "quorum-state"
EPOCH_FILE_NAME = "leader-epoch-checkpoint"
PARTITION_METADATA_NAME = "partition.metadata"
META_PROPERTIES_NAME = "meta.properties"
LOG_START_NAME = "log-start"
WATERMARK_NAME = "high-watermark"
WATERMARK_COPY_NAME = "high-watermark-copy"
WATERMARK_NAMES = (WATERMARK_NAME, WATERMARK_COPY_NAME)
QUARANTINED_NAME = "quarantined-log"
_DIGITS = 20
_PATHS_MAX = 256
"""The same few paths are needed again and again; joining a path costs more than a cache lookup."""


def partition_directory(data_directory: Path) -> Path:
    """Return the directory of the metadata log below a node's data directory."""
    return data_directory / f"{METADATA_TOPIC}-{METADATA_PARTITION}"


@lru_cache(maxsize=_PATHS_MAX)
def segment_path(directory: Path, base_offset: int, suffix: str = SEGMENT_SUFFIX) -> Path:
    """Return the path of a segment, or with ``suffix`` of one of its side files."""
    return directory / f"{base_offset:0{_DIGITS}d}{suffix}"


def parse_segment_name(name: str, suffix: str = SEGMENT_SUFFIX) -> int | None:
    """Return the base offset in a segment's name; None for any other name."""
    digits = name[:_DIGITS]
    if name[_DIGITS:] != suffix or len(digits) != _DIGITS:
        return None
    return int(digits) if digits.isascii() and digits.isdigit() else None


def side_file_kind(name: str) -> str:
    """Return the kind of a side file: its suffix if it belongs to a segment, else its name."""
    suffix = Path(name).suffix
    return suffix[1:] if suffix in (INDEX_SUFFIX, DIGEST_SUFFIX) else name


def segment_bases(names: Iterable[str]) -> list[int]:
    """Return the base offsets of the segments among ``names``, ascending."""
    bases = (parse_segment_name(name) for name in names)
    return sorted(base for base in bases if base is not None)
