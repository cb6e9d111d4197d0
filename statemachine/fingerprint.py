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
from statemachine.kept_packer import BUFFER_BYTES, KeptPacker

FINGERPRINT_BYTES = 16
"""128 bits: a collision takes about 2^64 tries."""

_OWNERS_CACHED_MAX = 1024

_known_defaults: dict[type, tuple[tuple[str, Any], ...]] = {}


def command_fingerprint(command: Command) -> bytes:
    """Return the digest of a command's type and content, ``FINGERPRINT_BYTES`` long.

    Sender, time, reason and sequence number are not part of it.
    """
    plain = _plain(command)
    try:
        content = _packer.pack(plain)
    except UnicodeEncodeError:
        content = _surrogate_packer.pack(plain)
    digest = _NO_CONTENT.copy()
    digest.update(content)
    return digest.digest()


@lru_cache(maxsize=_OWNERS_CACHED_MAX)
def owner_digest(principal: str) -> bytes:
    """Return the digest of a principal, ``FINGERPRINT_BYTES`` long; empty for no principal."""
    if not principal:
        return b""
    return hashlib.blake2b(
        principal.encode("utf-8", "replace"), digest_size=FINGERPRINT_BYTES
    ).digest()


_NO_CONTENT = hashlib.blake2b(digest_size=FINGERPRINT_BYTES)
"""Copied, because the name of an argument takes longer to find."""


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


_packer = KeptPacker(lambda: msgpack.Packer(default=_plain, buf_size=BUFFER_BYTES))
_surrogate_packer = KeptPacker(
    lambda: msgpack.Packer(default=_plain, unicode_errors="surrogatepass", buf_size=BUFFER_BYTES)
)
"""For text that UTF-8 cannot express: it makes a copy of every text."""
