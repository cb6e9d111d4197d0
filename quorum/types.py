"""Names and small values that every layer of the quorum shares.

Belongs here: identities, positions and endpoints, as plain immutable values. Does not
belong here: anything that reads a file, a clock or the network, and anything with a rule
about *when* (that is ``quorum.core``).

Ranges are half-open everywhere: ``*_end_offset`` is exclusive, ``*_start_offset`` inclusive.
"""

from __future__ import annotations

import base64
from dataclasses import dataclass
from typing import Annotated, TypeAlias

from quorum.values import value


@dataclass(frozen=True, slots=True)
class FixedBytes:
    """Says of a type hint how many bytes there are."""

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
METADATA_TOPIC = "__cluster_metadata"
METADATA_PARTITION = 0
METADATA_TOPIC_ID: Uuid = bytes(15) + b"\x01"
NO_NODE: NodeId = -1


def uuid_to_text(value: Uuid) -> str:
    """The 22-character base64url form that Kafka's files and tools use."""
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


@value
class OffsetAndEpoch:
    """A place in the log and the epoch that goes with it.

    As an end of a log: ``offset`` is exclusive and ``epoch`` is that of the record before it
    (0 for an empty log). As a snapshot id: the same reading.
    """

    offset: int
    epoch: Epoch

    def is_at_least(self, other: OffsetAndEpoch) -> bool:
        """Whether this log end is as new as ``other``: epoch first, then offset (Raft 5.4.1)."""
        return (self.epoch, self.offset) >= (other.epoch, other.offset)

    def __str__(self) -> str:
        return f"{self.offset}/{self.epoch}"


SnapshotId: TypeAlias = OffsetAndEpoch
"""End offset (exclusive) of what a checkpoint contains, and the epoch of its last record."""

LOG_BEGINNING = OffsetAndEpoch(0, 0)
BOOTSTRAP_SNAPSHOT_ID: SnapshotId = LOG_BEGINNING


@value
class EpochStart:
    """An entry of the epoch history: ``epoch`` begins at ``start_offset``."""

    epoch: Epoch
    start_offset: int


@value
class ReplicaKey:
    """Who a replica is: its number and the identity of its disk.

    ``directory_id`` is ``ZERO_UUID`` where it is not known; such a key matches by id alone.
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
    """Where a listener of a node can be reached. ``name`` is upper case (``CONTROLLER``)."""

    name: str
    host: str
    port: int

    @property
    def address(self) -> str:
        """``host:port`` with IPv6 hosts bracketed."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}"


@value
class LeaderAndEpoch:
    """The leader of an epoch as far as known; ``leader_id`` is ``NO_NODE`` when it is not."""

    leader_id: NodeId
    epoch: Epoch


@value
class Voter:
    """One entry of the voters record: who, where, and which kraft.version it supports."""

    key: ReplicaKey
    endpoints: tuple[Endpoint, ...] = ()
    min_supported_version: int = 0
    max_supported_version: int = 1
    tagged: TaggedFields = ()


@value
class VersionRange:
    """Levels of one feature that a release can run with, both ends inclusive."""

    name: str
    lowest: int
    highest: int


@value
class BootstrapState:
    """What a disk remembers of the bootstrap of its quorum, from its format until epoch 1.

    ``incarnation_id`` is drawn once per format, so it tells a disk from the one that the same
    command formatted before it. ``voter_list`` names the life of every bootstrap voter that this
    disk has agreed to found the quorum with, ascending by id; empty until it has. It never changes.
    """

    incarnation_id: Uuid
    voter_list: tuple[tuple[NodeId, Uuid], ...] = ()
    is_complete: bool = False
    """Whether every bootstrap voter is known to have agreed to ``voter_list``."""


@value
class ElectionState:
    """What ``quorum-state`` holds: the epoch, its leader if known, and the vote cast in it."""

    epoch: Epoch = 0
    leader_id: NodeId = NO_NODE
    voted: ReplicaKey | None = None
    vote_floor: OffsetAndEpoch | None = None
    """While set, this replica neither stands nor grants below it (ADR 7)."""
    bootstrap_state: BootstrapState | None = None
    """Only in epoch 0; None there means that this disk has not begun to found a quorum."""
    disqualified: str = ""
    """Why this directory id never votes again; empty for a voter in good standing."""


@value
class DigestAt:
    """The running log digest of everything below ``offset`` (exclusive)."""

    offset: int
    value: bytes
