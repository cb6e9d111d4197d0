"""Digests of a command's content and of the principal that sent it.

The leader computes them and the log keeps them. Any later leader can so distinguish a retry from
another command under the same sequence number (ADR 42).

Guarantee: equal commands have equal fingerprints in every process and release, as long as the
fields that differ from their defaults are the same. The input contains the names of command and
fields, so a new field with a default changes no old fingerprint.
"""

from __future__ import annotations

import hashlib
from dataclasses import MISSING, fields, is_dataclass
from functools import lru_cache
from typing import Any

import msgpack

from statemachine.commands import Command

FINGERPRINT_BYTES = 16
"""128 bits: a collision takes about 2^64 tries."""

_OWNERS_CACHED_MAX = 1024
_BUFFER_BYTES = 1024

_known_defaults: dict[type, tuple[tuple[str, Any], ...]] = {}


def command_fingerprint(command: Command) -> bytes:
    """Return the digest of a command's type and content, ``FINGERPRINT_BYTES`` long.

    Sender, time, reason and sequence number are not part of it.
    """
    packer = msgpack.Packer(default=_plain, unicode_errors="surrogatepass", buf_size=_BUFFER_BYTES)
    return hashlib.blake2b(packer.pack(command), digest_size=FINGERPRINT_BYTES).digest()


@lru_cache(maxsize=_OWNERS_CACHED_MAX)
def owner_digest(principal: str) -> bytes:
    """Return the digest of a principal, ``FINGERPRINT_BYTES`` long; empty for no principal."""
    if not principal:
        return b""
    return hashlib.blake2b(
        principal.encode("utf-8", "replace"), digest_size=FINGERPRINT_BYTES
    ).digest()


def _plain(value: Any) -> list[Any]:
    """Return a dataclass as its name and the fields that differ from their defaults.

    Dataclasses in a field are converted as well, because the packer's calls back cost more.
    """
    kind: Any = type(value)
    defaults = _known_defaults.get(kind)
    if defaults is None:
        defaults = tuple([(each.name, each.default) for each in fields(kind)])
        _known_defaults[kind] = defaults
    found: list[Any] = [kind.__name__]
    for name, default in defaults:
        content = getattr(value, name)
        if default is MISSING or content != default:
            if type(content) is tuple and content and is_dataclass(type(content[0])):
                content = [_plain(each) for each in content]
            found.append(name)
            found.append(content)
    return found
