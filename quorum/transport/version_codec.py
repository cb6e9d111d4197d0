"""Protobuf of version ranges, which a replica tells of itself."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from quorum.errors import PeerProtocolError
from quorum.types import VersionRange
from quorum.v1 import raft_pb2

RANGES_MAX: Final = 64
NAME_CHARACTERS_MAX: Final = 255


def ranges_to_pb(ranges: Iterable[VersionRange]) -> list[raft_pb2.VersionRange]:
    """Ranges in the order given."""
    return [
        raft_pb2.VersionRange(name=each.name, lowest=each.lowest, highest=each.highest)
        for each in ranges
    ]


def ranges_from_pb(values: Iterable[raft_pb2.VersionRange]) -> tuple[VersionRange, ...]:
    """Inverse of ``ranges_to_pb``.

    Raises:
        PeerProtocolError: Too many, or a name too long.
    """
    ranges = tuple(VersionRange(value.name, value.lowest, value.highest) for value in values)
    if len(ranges) > RANGES_MAX:
        raise PeerProtocolError(f"{len(ranges)} version ranges, more than {RANGES_MAX}")
    if any(len(each.name) > NAME_CHARACTERS_MAX for each in ranges):
        raise PeerProtocolError(f"a feature's name above {NAME_CHARACTERS_MAX} characters")
    return ranges
