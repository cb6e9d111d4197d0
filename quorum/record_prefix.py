"""How nearly every record of a metadata log begins, ready made.

Behind a record's length come its attributes, timestamp delta, offset delta and key. Ours have no
attributes, the batch's own timestamp and no key, so only the offset delta differs. Whoever writes
takes these bytes as they are; whoever reads tests for them in one call, and parses carefully only
what differs.

See: KIP-98 (record format), docs/reference/batches.md#batch.
"""

from __future__ import annotations

from quorum.varint import encode_varint

NULL_KEY = b"\x01"
"""A key's length of -1."""


def plain_prefix(index: int) -> bytes:
    """What a keyless record begins with behind its length; ``index`` is its offset delta."""
    return b"\0\0" + encode_varint(index) + NULL_KEY


PLAIN_PREFIXES = tuple(map(plain_prefix, range(8192)))
"""``plain_prefix`` of as many records as a batch of ours holds."""
