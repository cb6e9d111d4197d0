"""The running log digest: one value for all batches below an offset.

This module folds batches into it; the log and the runtime store and compare values (ADR 5).

Invariant: two logs have equal digests at an offset exactly when their batches below it are
equal byte for byte, headers with base offset and epoch included.
"""

from __future__ import annotations

from hashlib import blake2b

LOG_DIGEST_BYTES = 16
EMPTY_LOG_DIGEST = bytes(LOG_DIGEST_BYTES)
"""Digest of the log below offset 0."""

_PERSON = b"quorate log"
_FRESH = blake2b(digest_size=LOG_DIGEST_BYTES, person=_PERSON)
"""Template for every batch: copying costs half as much as a new hash with its parameters."""


def fold(previous: bytes, batch: bytes | bytearray | memoryview) -> bytes:
    """Return the digest behind ``batch``, given the digest before it. BLAKE2b, 128 bits.

    ``batch`` is exactly one whole batch: folding two at once gives another value.
    """
    state = _FRESH.copy()
    state.update(previous)
    state.update(batch)
    return state.digest()
