"""One short string for the content of a batch or a state, for comparing what was told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def digest_of(values: Iterable[bytes], headers: Iterable[tuple[str, bytes | None]] = ()) -> str:
    """Of record values in their order, and of the headers of the first record; None is empty."""
    parts: list[bytes] = []
    for value in values:
        parts += (b"v%d:" % len(value), value)
    for name, content in headers:
        value = content or b""
        parts += (f"h{name}={len(value)}:".encode(), value)
    return hashlib.blake2b(b"".join(parts), digest_size=8).hexdigest()
