"""The handshake that opens a peer stream: who is there, of which cluster, set up how.

Each side sends one hello and judges the other's before anything else. Two nodes whose
``ClusterConfig`` differ must not replicate to each other: they would derive different states
from one log.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from google.protobuf.message import DecodeError

from quorum.errors import PeerProtocolError
from quorum.transport import codec, framing
from quorum.transport.limits import DIGEST_BYTES_MAX, FRAME_VERSION_MAX, FRAME_VERSION_MIN
from quorum.transport.packing import HEADER
from quorum.types import NO_NODE, ZERO_UUID, ReplicaKey
from quorum.v1 import raft_pb2

OWN_ADDRESS: Final = "the address is this node's own"
"""Not a fault: a list of bootstrap servers names every node, this one too."""


@dataclass(frozen=True, slots=True)
class Hello:
    """What a side says of itself. ``key.id`` is ``NO_NODE`` for an observer without a number."""

    cluster_id: str
    key: ReplicaKey
    config_digest: bytes
    frame_version_min: int = FRAME_VERSION_MIN
    frame_version_max: int = FRAME_VERSION_MAX
    process_id: bytes = b""
    """Drawn once per process; empty: not known."""


def encode_hello(hello: Hello) -> bytes:
    """The frame of a hello."""
    value = raft_pb2.PeerHello(
        cluster_id=hello.cluster_id,
        node_id=hello.key.id if hello.key.id != NO_NODE else None,
        directory_id=hello.key.directory_id,
        config_digest=hello.config_digest,
        frame_version_min=hello.frame_version_min,
        frame_version_max=hello.frame_version_max,
        process_id=hello.process_id,
    )
    return HEADER.pack(framing.HELLO, 0, HEADER.size, 0) + bytes(value.SerializeToString())


def decode_hello(data: bytes) -> Hello:
    """Inverse of ``encode_hello``.

    Raises:
        PeerProtocolError: Not a hello.
    """
    if len(data) < HEADER.size or data[0] != framing.HELLO:
        raise PeerProtocolError(f"a stream opens with a hello, not with {data[:1].hex()!r}")
    try:
        value = raft_pb2.PeerHello.FromString(data[HEADER.size :])
    except DecodeError as error:
        raise PeerProtocolError(f"malformed hello of {len(data)} bytes") from error
    if len(value.process_id) > DIGEST_BYTES_MAX:
        raise PeerProtocolError(f"process id of {len(value.process_id)} bytes")
    if len(value.config_digest) > DIGEST_BYTES_MAX:
        raise PeerProtocolError(f"config digest of {len(value.config_digest)} bytes")
    node_id = value.node_id if value.HasField("node_id") else NO_NODE
    if node_id < NO_NODE:
        raise PeerProtocolError(f"node id {node_id} in a hello")
    return Hello(
        cluster_id=codec.cluster_id_from_pb(value.cluster_id),
        key=ReplicaKey(node_id, codec.uuid_from_pb(value.directory_id)),
        config_digest=value.config_digest,
        frame_version_min=value.frame_version_min,
        frame_version_max=value.frame_version_max,
        process_id=value.process_id,
    )


def hello_problem(ours: Hello, theirs: Hello) -> str | None:
    """Why these two must not talk, as a sentence for both operators; None when they may.

    "Peer" is the author of ``theirs``.
    """
    if ours.key == theirs.key and ours.key.directory_id != ZERO_UUID:
        return OWN_ADDRESS
    if theirs.cluster_id != ours.cluster_id:
        return (
            f"the peer belongs to cluster {theirs.cluster_id!r}, "
            f"this node {_name(ours)} to {ours.cluster_id!r}"
        )
    if theirs.config_digest != ours.config_digest:
        return (
            f"the cluster configuration of the peer {_name(theirs)} has digest "
            f"{theirs.config_digest.hex() or '(none)'}, that of this node {_name(ours)} "
            f"{ours.config_digest.hex() or '(none)'}: settings that must agree on all nodes differ"
        )
    if (
        theirs.frame_version_min > ours.frame_version_max
        or theirs.frame_version_max < ours.frame_version_min
    ):
        return (
            f"the peer {_name(theirs)} understands frame versions {theirs.frame_version_min} to "
            f"{theirs.frame_version_max}, this node {_name(ours)} {ours.frame_version_min} to "
            f"{ours.frame_version_max}"
        )
    if theirs.key.id != NO_NODE and theirs.key.id == ours.key.id:
        return f"the peer and this node both call themselves node {ours.key.id}"
    return None


def _name(hello: Hello) -> str:
    return "(observer)" if hello.key.id == NO_NODE else str(hello.key.id)
