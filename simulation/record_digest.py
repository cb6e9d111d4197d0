"""A short digest of a batch or a state, for comparing what clients received."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def digest_of(values: Iterable[bytes], headers: Iterable[tuple[str, bytes | None]] = ()) -> str:
    """Return the digest of record values and of the first record's headers; None is empty."""
    parts: list[bytes] = []
    for value in values:
        parts += (b"v%d:" % len(value), value)
    for name, content in headers:
        value = content or b""
        parts += (f"h{name}={len(value)}:".encode(), value)
    return hashlib.blake2b(b"".join(parts), digest_size=8).hexdigest()
