"""Optional parts of packed frames: ``tag, length, bytes`` each, between fixed fields and tail.

A reader of an older version skips all parts, because the tail position tells where its own fields
continue. A reader skips an unknown tag by its length. A frame without parts has the same bytes as
before parts existed.

Tags of Fetch: 1 subtree, 2 its low is provisional (no bytes), 3 the sender's supported versions.
Tags of its response: 1 the route through relays. Numbers are never reused.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from quorum.core.messages.fetch_messages import Subtree
from quorum.core.state.relay_table import LINKS_MAX
from quorum.errors import PeerProtocolError
from quorum.transport.limits import NAME_CHARACTERS_MAX, RANGES_MAX
from quorum.types import ReplicaKey, VersionRange

SUBTREE: Final = 1
PROVISIONAL: Final = 2
SUPPORTED: Final = 3
ROUTE: Final = 1
PATH_KEYS_MAX: Final = 64
"""Bound of relays in one answer; far longer than any accepted chain."""

_PART: Final = Struct(">BH")
_SUBTREE: Final = Struct(">qi")
_LINK: Final = Struct(">ii")
_AGE: Final = Struct(">i")
_AGE_MS_MAX: Final = (1 << 31) - 1
_KEY: Final = Struct(">i16s")
_RANGE: Final = Struct(">iiH")


def pack_part(tag: int, content: bytes) -> bytes:
    """Return one optional part."""
    return _PART.pack(tag, len(content)) + content


def unpack_parts(data: bytes) -> dict[int, bytes]:
    """Return every part by tag; of a repeated tag the last. An incomplete part ends the list."""
    parts: dict[int, bytes] = {}
    position = 0
    while position + _PART.size <= len(data):
        tag, size = _PART.unpack_from(data, position)
        begin = position + _PART.size
        position = begin + size
        if position > len(data):
            break
        parts[tag] = data[begin:position]
    return parts


def pack_subtree(subtree: Subtree) -> bytes:
    """Return the part of a Fetch that reports a relay's observers.

    Raises:
        StructError: A number does not fit its field.
    """
    links = b"".join(_LINK.pack(*link) for link in subtree.links)
    part = pack_part(SUBTREE, _SUBTREE.pack(subtree.low, subtree.members) + links)
    return part + pack_part(PROVISIONAL, b"") if subtree.is_provisional else part


def unpack_subtree(data: bytes) -> Subtree | None:
    """Inverse of ``pack_subtree`` for all optional parts of a Fetch; None if it is absent.

    Raises:
        PeerProtocolError: Malformed.
    """
    parts = unpack_parts(data)
    content = parts.get(SUBTREE)
    if content is None:
        return None
    links = len(content) - _SUBTREE.size
    if links < 0 or links % _LINK.size or links > LINKS_MAX * _LINK.size:
        raise PeerProtocolError(f"a subtree of {len(content)} bytes")
    low, members = _SUBTREE.unpack_from(content)
    routes = tuple(_LINK.iter_unpack(content[_SUBTREE.size :])) if links else ()
    return Subtree(low, members, routes, PROVISIONAL in parts)


def pack_supported(ranges: tuple[VersionRange, ...]) -> bytes:
    """Return the part of a Fetch that advertises the sender's supported versions.

    Raises:
        StructError, ValueError: A number, a name or all of them do not fit their fields.
    """
    content = b""
    for each in ranges:
        name = each.name.encode()
        content += _RANGE.pack(each.lowest, each.highest, len(name)) + name
    return pack_part(SUPPORTED, content)


def unpack_supported(data: bytes) -> tuple[VersionRange, ...]:
    """Inverse of ``pack_supported`` for all optional parts of a Fetch; empty if it is absent.

    Raises:
        PeerProtocolError: Malformed, or more than ``RANGES_MAX`` ranges.
    """
    content = unpack_parts(data).get(SUPPORTED, b"")
    ranges: list[VersionRange] = []
    position = 0
    while position < len(content):
        name = position + _RANGE.size
        if name > len(content) or len(ranges) == RANGES_MAX:
            raise PeerProtocolError(f"version ranges of {len(content)} bytes")
        lowest, highest, size = _RANGE.unpack_from(content, position)
        position = name + size
        if position > len(content) or size > NAME_CHARACTERS_MAX:
            raise PeerProtocolError(f"a feature's name of {size} bytes")
        try:
            ranges.append(VersionRange(content[name:position].decode(), lowest, highest))
        except UnicodeDecodeError as error:
            raise PeerProtocolError(f"a feature's name: {error}") from error
    return tuple(ranges)


def pack_route(path: tuple[ReplicaKey, ...], contact_age_ms: int) -> bytes:
    """Return the part of a Fetch response that names the relays it came through.

    Raises:
        StructError: A number does not fit its field.
    """
    keys = b"".join(_KEY.pack(key.id, key.directory_id) for key in path)
    return pack_part(ROUTE, _AGE.pack(min(contact_age_ms, _AGE_MS_MAX)) + keys)


def unpack_route(data: bytes) -> tuple[tuple[ReplicaKey, ...], int]:
    """Inverse of ``pack_route`` for all optional parts of a response; empty if it is absent.

    Raises:
        PeerProtocolError: Malformed.
    """
    content = unpack_parts(data).get(ROUTE)
    if content is None:
        return (), 0
    keys = len(content) - _AGE.size
    if keys < 0 or keys % _KEY.size or keys > PATH_KEYS_MAX * _KEY.size:
        raise PeerProtocolError(f"a route of {len(content)} bytes")
    if keys == 0:
        return (), 0
    (age_ms,) = _AGE.unpack_from(content)
    return tuple(ReplicaKey(*found) for found in _KEY.iter_unpack(content[_AGE.size :])), age_ms
