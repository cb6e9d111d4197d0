"""Precomputed beginning of nearly every record of a metadata log.

A record's length is followed by attributes, timestamp delta, offset delta and key. Our records have
no attributes, the batch's timestamp and no key, so only the offset delta differs. Writers copy
these bytes; readers compare them in one call and parse only records that differ.

See: KIP-98 (record format), docs/reference/batches.md#batch.
"""

from __future__ import annotations

from quorum.varint import encode_varint

NULL_KEY = b"\x01"
"""A key with length -1."""


def plain_prefix(index: int) -> bytes:
    """Return the bytes between a keyless record's length and its value's length.

    ``index`` is the record's offset delta.
    """
    return b"\0\0" + encode_varint(index) + NULL_KEY


PLAIN_PREFIXES = tuple(map(plain_prefix, range(8192)))
"""``plain_prefix`` for as many records as a batch of ours may hold."""
