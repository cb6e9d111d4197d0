"""Digests that stand for a command's content and for whoever sent it.

Leaders compute them and the log keeps them, so that any later leader tells a repeat of a command
from another command under the same sequence number (ADR 42).

Guarantee: equal commands have equal fingerprints in every process and release, as long as the
fields that differ from their defaults are the same. Fields and commands are named in it, so a new
field with a default changes no old fingerprint.
"""

from __future__ import annotations

import hashlib
from dataclasses import MISSING, fields
from functools import cache, lru_cache
from typing import Any

import msgpack

from statemachine.commands import Command

FINGERPRINT_BYTES = 16
"""Too many for anybody to find two commands with the same one (2^64 tries)."""

_OWNERS_CACHED_MAX = 1024
_BUFFER_BYTES = 1024


def command_fingerprint(command: Command) -> bytes:
    """Return the digest of a command's type and content, ``FINGERPRINT_BYTES`` long.

    Who sent it, when, why and under which number plays no part.
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
    """A dataclass as its name and the fields that differ from their defaults."""
    kind: Any = type(value)
    found: list[Any] = [kind.__name__]
    for name, default in _defaults(kind):
        content = getattr(value, name)
        if content != default:
            found += (name, content)
    return found


@cache
def _defaults(kind: type[Any]) -> tuple[tuple[str, Any], ...]:
    return tuple((each.name, _default_of(each.default)) for each in fields(kind))


def _default_of(default: Any) -> Any:
    # No content equals an object of its own: a field without a default is always written.
    return object() if default is MISSING else default
