"""``<base offset>.digest``: the log digest at a segment's base, one file per segment.

It makes the digests inside a segment computable from that segment alone. It also lets recovery
verify a sealed segment, including the header fields that no checksum covers: the digest folded over
the segment must equal the one at the next base (ADR 5).
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
    """Store the digest below ``base_offset`` durably; empty for "unknown".

    Raises:
        StorageError: The old or the new value is on disk.
    """
    line = json.dumps({"offset": base_offset, "digest": digest.hex()}, separators=(",", ":"))
    replace_file(fs, segment_path(directory, base_offset, DIGEST_SUFFIX), seal(line))


def read_digest_file(fs: FileSystem, directory: Path, base_offset: int) -> bytes | None:
    """Return the stored digest, empty for "unknown"; None if the file is missing or damaged.

    Raises:
        StorageError: The file exists but cannot be read. The caller must not rewrite it: it may be
            intact, and the value is stored nowhere else.
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
        return None  # trimmed in the meantime
    return digest if len(digest) in (0, LOG_DIGEST_BYTES) else None
