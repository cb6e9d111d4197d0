"""Reduce an object to plain values and a fingerprint, equal for equal contents.

Two states of a node are the same state when their fingerprints are equal. The object is converted
to plain values, in the order of its containers (sets sorted), and hashed to 128 bits.
"""

from __future__ import annotations

import hashlib
import marshal
from collections import deque
from enum import Enum
from typing import Any

_PLAIN = (int, str, bytes, bool, float, type(None))
_MARSHAL_VERSION = 2
"""The last version without back references, which would depend on identity."""


_slots: dict[type, tuple[str, ...]] = {}


def _attributes(kind: type) -> tuple[str, ...]:
    known = _slots.get(kind)
    if known is not None:
        return known
    names: list[str] = []
    for each in kind.__mro__:
        slots = each.__dict__.get("__slots__", ())
        names += [slots] if isinstance(slots, str) else list(slots)
    found = tuple(name for name in names if name not in {"__weakref__", "__dict__"})
    _slots[kind] = found
    return found


def plain_values(value: Any) -> Any:
    """Return ``value`` converted to plain values recursively."""
    kind = type(value)
    if kind in _PLAIN:
        return value
    if isinstance(value, tuple | list | deque):
        return tuple([plain_values(each) for each in value])
    if isinstance(value, dict):
        return tuple([(plain_values(key), plain_values(each)) for key, each in value.items()])
    if isinstance(value, set | frozenset):
        return tuple(sorted((plain_values(each) for each in value), key=repr))
    if isinstance(value, Enum):
        return f"{kind.__name__}.{value.name}"
    parts = [kind.__name__]
    parts += [plain_values(getattr(value, name)) for name in _attributes(kind)]
    if hasattr(value, "__dict__"):
        parts += [plain_values(each) for each in vars(value).values()]
    return tuple(parts)


def fingerprint(value: Any) -> bytes:
    """Return a 16-byte hash of the contents of ``value``."""
    plain = marshal.dumps(plain_values(value), _MARSHAL_VERSION)
    return hashlib.blake2b(plain, digest_size=16).digest()
