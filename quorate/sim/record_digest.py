"""One short string for the content of a batch or a state, for comparing what was told."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable


def digest_of(values: Iterable[bytes], headers: Iterable[tuple[str, bytes]] = ()) -> str:
    """Of record values in their order, and of the headers of the first record."""
    found = hashlib.blake2b(digest_size=8)
    for value in values:
        found.update(b"v%d:" % len(value))
        found.update(value)
    for name, value in headers:
        found.update(f"h{name}={len(value)}:".encode())
        found.update(value)
    return found.hexdigest()
