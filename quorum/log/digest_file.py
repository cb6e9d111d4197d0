"""``<base offset>.digest``: the log digest at a segment's base, one file per segment.

With it the digests inside a segment can be computed from that segment alone, and recovery
proves that a sealed segment is what was written, its unchecksummed header fields included:
folding it must give the value at the next one's base (ADR 5).
"""

from __future__ import annotations

import json
from pathlib import Path

from quorum.digest import LOG_DIGEST_BYTES
from quorum.errors import StorageError
from quorum.log.layout import DIGEST_SUFFIX, segment_path
from quorum.log.side_file import integer_field, parse_object, read_file, replace_file, seal, unseal
from quorum.ports import FileSystem


def write_digest_file(fs: FileSystem, directory: Path, base_offset: int, digest: bytes) -> None:
    """Store the digest below ``base_offset`` durably; empty for "not known".

    Raises:
        StorageError: Old or new value is on disk.
    """
    line = json.dumps({"offset": base_offset, "digest": digest.hex()}, separators=(",", ":"))
    replace_file(fs, segment_path(directory, base_offset, DIGEST_SUFFIX), seal(line))


def read_digest_file(fs: FileSystem, directory: Path, base_offset: int) -> bytes | None:
    """The stored digest, empty for "not known"; None when the file is missing or damaged.

    Raises:
        StorageError: It is there and cannot be read. That is no reason to write it anew: what
            cannot be read now may be intact, and nothing else knows the value.
    """
    path = segment_path(directory, base_offset, DIGEST_SUFFIX)
    try:
        if not fs.exists(path):
            return None
        fields = parse_object(unseal(read_file(fs, path)))
        if integer_field(fields, "offset", least=0) != base_offset:
            return None
        digest = bytes.fromhex(str(fields.get("digest")))
    except ValueError:
        return None
    except StorageError:
        if fs.exists(path):
            raise
        return None  # trimmed away meanwhile
    return digest if len(digest) in (0, LOG_DIGEST_BYTES) else None
