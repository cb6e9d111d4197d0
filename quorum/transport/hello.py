"""The handshake that opens a peer stream: who is there, of which cluster, set up how.

Each side sends one hello and evaluates the other's before anything else. Two nodes whose
``ClusterConfig`` differ must not replicate to each other: they would derive different states
from one log.
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
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
_PROOF_DOMAIN: Final = b"quorum peer process\0"
_HINT_DOMAIN: Final = b"quorum peer process, shown where only a message led\0"


@dataclass(frozen=True, slots=True)
class Hello:
    """What a side says of itself. ``key.id`` is ``NO_NODE`` for an observer without a number."""

    cluster_id: str
    key: ReplicaKey
    config_digest: bytes
    frame_version_min: int = FRAME_VERSION_MIN
    frame_version_max: int = FRAME_VERSION_MAX
    process_id: bytes = b""
    """Drawn once per process; empty only where ``key.id`` is ``NO_NODE``. In the hello of a
    stream's serving side it is the ``process_proof`` of that; to an address that only a message
    named, what ``hinted_hello`` makes of it."""


def process_proof(process_id: bytes) -> bytes:
    """What a process shows to everybody who opens a stream to it, in place of its id.

    It lets a peer recognize the process on a stream that this one opens, and nobody can open one in
    its name with it: whoever asks may be a stranger (ADR 52).
    """
    return hashlib.sha256(_PROOF_DOMAIN + process_id).digest() if process_id else b""


def served_hello(hello: Hello) -> Hello:
    """What the serving side of a stream says of itself."""
    return replace(hello, process_id=process_proof(hello.process_id))


def hinted_hello(hello: Hello) -> Hello:
    """What the opening side says of itself at an address that only a message named.

    Anybody can name an address of his own, and with the process id speak for this replica elsewhere
    (ADR 52).
    """
    return replace(hello, process_id=_hinted(hello.process_id))


def _hinted(process_id: bytes) -> bytes:
    return hashlib.sha256(_HINT_DOMAIN + process_id).digest() if process_id else b""


def is_one_process(one: bytes, other: bytes) -> bool:
    """Whether two process ids of opening sides are of one process, which shows it in two forms."""
    return one == other or _hinted(one) == other or one == _hinted(other)


def is_same_process(caller: Hello, met: Hello | None) -> bool:
    """Whether ``caller``, of a stream's opening side, is the process that answered with ``met``."""
    return (
        met is not None
        and caller.process_id != b""
        and met.key == caller.key
        and hmac.compare_digest(met.process_id, process_proof(caller.process_id))
    )


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
    if theirs.key.id != NO_NODE and (theirs.key.directory_id == ZERO_UUID or not theirs.process_id):
        # Without its disk it would pass for any disk of that number; without its process nobody
        # could tell it from another one that speaks for the same disk.
        return f"the peer {_name(theirs)} does not say which disk and which process it is"
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
