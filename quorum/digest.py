"""The running log digest: one value that stands for every batch below an offset.

Belongs here: the fold. Where values are kept and compared is the log's and the runtime's
business (ADR 5).

Invariant: two logs have equal digests at an offset exactly when their batches below it are
equal byte for byte, headers with base offset and epoch included.
"""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from quorum.batch_header import BatchHeader
from quorum.varint import Buffer

LOG_DIGEST_BYTES = 16
EMPTY_LOG_DIGEST = bytes(LOG_DIGEST_BYTES)
"""Digest of the log below offset 0."""

_PERSON = b"quorate log"
_FRESH = blake2b(digest_size=LOG_DIGEST_BYTES, person=_PERSON)
"""Copied for every batch: a copy takes half as long as a new one with its parameters."""


def fold(previous: bytes, batch: Buffer) -> bytes:
    """The digest behind ``batch``, given the one before it. BLAKE2b, 128 bits.

    ``batch`` is exactly one whole batch: folding two at once gives another value.
    """
    state = _FRESH.copy()
    state.update(previous)
    state.update(batch)
    return state.digest()


def fold_batches(previous: bytes, data: Buffer, headers: Iterable[BatchHeader]) -> bytes:
    """Fold each batch that ``scan_batches`` found in ``data``, in order."""
    view = memoryview(data)
    for header in headers:
        previous = fold(previous, view[header.position : header.end_position])
    return previous
