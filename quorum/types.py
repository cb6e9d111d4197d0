"""Identities, positions and endpoints that every layer of the quorum shares.

They are plain immutable values. Code that reads a file, a clock or the network, and rules about
*when* something happens (``quorum.core``), do not belong here.

Ranges are half-open everywhere: ``*_end_offset`` is exclusive, ``*_start_offset`` inclusive.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from quorum.values import value


@dataclass(frozen=True, slots=True)
class FixedBytes:
    """Length annotation of a bytes type hint."""

    size: int


NodeId: TypeAlias = int
"""A node's number, 0 or above. Negative numbers down from -2 name bootstrap servers."""

Epoch: TypeAlias = int
"""The leadership term of one leader. Starts at 1; 0 has no leader."""

Uuid: TypeAlias = Annotated[bytes, FixedBytes(16)]
"""Exactly 16 bytes. Kept as bytes because it is compared and stored far more than shown."""

TaggedFields: TypeAlias = tuple[tuple[int, bytes], ...]
"""Optional fields of a struct on disk, unknown ones included: tag number and payload,
ascending by tag. See: KIP-482."""

ZERO_UUID: Uuid = bytes(16)
EPOCH_MAX: Epoch = (1 << 31) - 2
"""Largest epoch accepted from a peer: one below the int32 maximum, which leaves room for one more
epoch."""
METADATA_TOPIC = "__cluster_metadata"
METADATA_PARTITION = 0
METADATA_TOPIC_ID: Uuid = bytes(15) + b"\x01"
NO_NODE: NodeId = -1


def shown_high_watermark(high_watermark: int) -> int:
    """Return a high watermark as people and metrics get it: -1 while it is unknown (KIP-595).

    A replica that knows of no committed record does not know how far the log of its quorum goes.
    """
    return high_watermark or -1


def uuid_to_text(value: Uuid) -> str:
    """Return the 22-character base64url form that Kafka's files and tools use."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def uuid_from_text(text: str) -> Uuid:
    """Parse the 22-character base64url form.

    Raises:
        ValueError: If the text is not base64url of exactly 16 bytes.
    """
    try:
        value = base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)
    except ValueError as error:
        raise ValueError(f"not a base64url uuid: {text!r}") from error
    if len(value) != 16:
        raise ValueError(f"not a base64url uuid of 16 bytes: {text!r}")
    return value


def draw_directory_id(random_bytes: Callable[[int], bytes]) -> Uuid:
    """Return a new directory id from a source of random bytes.

    It is never reserved, and its text never begins with "-", which command lines would parse
    as an option.
    """
    while True:
        drawn = bytearray(random_bytes(16))
        drawn[6] = drawn[6] & 0x0F | 0x40
        drawn[8] = drawn[8] & 0x3F | 0x80
        value = bytes(drawn)
        if not uuid_to_text(value).startswith("-"):
            return value


@value
class OffsetAndEpoch:
    """A position in the log and its epoch.

    As a log end: ``offset`` is exclusive and ``epoch`` is that of the record before it
    (0 for an empty log). A snapshot id is read the same way.
    """

    offset: int
    epoch: Epoch

    def is_at_least(self, other: OffsetAndEpoch) -> bool:
        """Whether this log end is as new as ``other``: epoch first, then offset (Raft 5.4.1)."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)

    def __str__(self) -> str:
        return f"{self.offset}/{self.epoch}"


SnapshotId: TypeAlias = OffsetAndEpoch
"""End offset (exclusive) of a checkpoint's content, and the epoch of its last record."""

LOG_BEGINNING = OffsetAndEpoch(0, 0)
BOOTSTRAP_SNAPSHOT_ID: SnapshotId = LOG_BEGINNING


@value
class EpochStart:
    """An entry of the epoch history: ``epoch`` begins at ``start_offset``."""

    epoch: Epoch
    start_offset: int


@value
class ReplicaKey:
    """Identity of a replica: its node id and the identity of its disk.

    ``directory_id`` is ``ZERO_UUID`` if unknown; such a key matches by id alone.
    """

    id: NodeId
    directory_id: Uuid = ZERO_UUID

    def matches(self, other: ReplicaKey) -> bool:
        """Whether both name the same replica, an unknown directory matching any."""
        return self.id == other.id and (
            self.directory_id == other.directory_id
            or self.directory_id == ZERO_UUID
            or other.directory_id == ZERO_UUID
        )


@value
class Endpoint:
    """Address of a node's listener. ``name`` is upper case (``CONTROLLER``)."""

    name: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """Return ``host:port``, with IPv6 hosts bracketed."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@value
class LeaderAndEpoch:
    """The leader of an epoch; ``leader_id`` is ``NO_NODE`` if unknown."""

    leader_id: NodeId
    epoch: Epoch


@value
class Voter:
    """One entry of the voters record: key, endpoints, and supported kraft.version."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    min_supported_version: int = 0
    max_supported_version: int = 1
    tagged: TaggedFields = ()


@value
class VersionRange:
    """Levels of one feature that a release supports, both ends inclusive."""

    name: str
    lowest: int
    highest: int


@value
class BootstrapState:
    """State of the quorum's bootstrap on one disk, from its format until epoch 1.

    ``incarnation_id`` is drawn once per format. It distinguishes a disk from an earlier one that
    the same command formatted. ``voter_list`` has the incarnation id of every bootstrap voter that
    this disk has agreed on, ascending by node id; empty until it has agreed. It never changes.
    """

    incarnation_id: Uuid
    voter_list: tuple[tuple[NodeId, Uuid], ...] = ()
    is_complete: bool = False
    """Whether all bootstrap voters are known to have agreed to ``voter_list``."""


@value
class ElectionState:
    """Content of ``quorum-state``: the epoch, its leader if known, and the vote cast in it."""

    epoch: Epoch = 0
    leader_id: NodeId = NO_NODE
    voted: ReplicaKey | None = None
    vote_floor: OffsetAndEpoch | None = None
    """While set, this replica neither campaigns nor grants votes below it (ADR 7)."""
    bootstrap_state: BootstrapState | None = None
    """Only in epoch 0; None there means that this disk has not begun to bootstrap."""
    disqualified: str = ""
    """Why this directory id never votes again; empty for a voter that may vote."""


@value
class DigestAt:
    """The running log digest of all records below ``offset`` (exclusive)."""

    offset: int
    value: bytes
