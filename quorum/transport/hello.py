"""The handshake that opens a peer stream: identity, cluster, log, configuration, versions.

Each side sends one hello and validates the other's before anything else. Two nodes whose
``ClusterConfig`` differ must not replicate to each other: they would derive different states
from one log. Nor must two nodes of different incarnations of the log (ADR 65).
"""

from __future__ import annotations

import hashlib
import hmac
from dataclasses import dataclass, replace
from typing import Final, NamedTuple

from google.protobuf.message import DecodeError

from quorum.errors import ErrorCode, PeerProtocolError
from quorum.transport import codec, framing
from quorum.transport.limits import DIGEST_BYTES_MAX, FRAME_VERSION_MAX, FRAME_VERSION_MIN
from quorum.transport.packing import HEADER
from quorum.types import NO_NODE, ZERO_UUID, ReplicaKey, Uuid, uuid_to_text
from quorum.v1 import raft_pb2

OWN_ADDRESS: Final = "the address is this node's own"
"""Not a fault: the list of bootstrap servers names every node, including this one."""
_PORT_MAX: Final = 65_535
_PROOF_DOMAIN: Final = b"quorum peer process\0"
_HINT_DOMAIN: Final = b"quorum peer process, shown where only a message led\0"


@dataclass(frozen=True, slots=True)
class Hello:
    """The identity a side presents. ``key.id`` is ``NO_NODE`` for an observer without a number."""

    cluster_id: str
    key: ReplicaKey
    config_digest: bytes
    frame_version_min: int = FRAME_VERSION_MIN
    frame_version_max: int = FRAME_VERSION_MAX
    process_id: bytes = b""
    """Drawn once per process; empty only where ``key.id`` is ``NO_NODE``. The serving side of a
    stream sends its ``process_proof`` instead. The opening side sends ``hinted_hello`` to an
    address that only a message named."""
    log_incarnation_id: Uuid = ZERO_UUID
    """The incarnation of the log that the directory belongs to (ADR 65)."""
    tcp_port: int = 0
    """Where this node answers TCP streams, on the host of its gRPC address; 0: nowhere. A node that
    has such a port also opens TCP streams."""


def process_proof(process_id: bytes) -> bytes:
    """Return what a process sends, in place of its id, to every caller that opens a stream to it.

    A peer recognises the process by it on a stream that the process opens. A caller cannot use it
    to open a stream in the name of the process: the caller may be a stranger (ADR 52).
    """
    return hashlib.sha256(_PROOF_DOMAIN + process_id).digest() if process_id else b""


def served_hello(hello: Hello) -> Hello:
    """Return the hello that the serving side of a stream sends."""
    return replace(hello, process_id=process_proof(hello.process_id))


def hinted_hello(hello: Hello) -> Hello:
    """Return the hello that the opening side sends to an address that only a message named.

    An attacker can name its own address; with the process id it could speak for this replica
    elsewhere (ADR 52).
    """
    return replace(hello, process_id=_hinted(hello.process_id))


def _hinted(process_id: bytes) -> bytes:
    return hashlib.sha256(_HINT_DOMAIN + process_id).digest() if process_id else b""


def is_one_process(one: bytes, other: bytes) -> bool:
    """Return whether two process ids of opening sides, in either of two forms, are one process."""
    return one == other or _hinted(one) == other or one == _hinted(other)


def is_same_process(caller: Hello, met: Hello | None) -> bool:
    """Return whether ``caller``, which opens a stream, is the process that answered ``met``."""
    return (
        met is not None
        and caller.process_id != b""
        and met.key == caller.key
        and hmac.compare_digest(met.process_id, process_proof(caller.process_id))
    )


def encode_hello(hello: Hello) -> bytes:
    """Return the frame of a hello."""
    value = raft_pb2.PeerHello(
        cluster_id=hello.cluster_id,
        node_id=hello.key.id if hello.key.id != NO_NODE else None,
        directory_id=hello.key.directory_id,
        config_digest=hello.config_digest,
        frame_version_min=hello.frame_version_min,
        frame_version_max=hello.frame_version_max,
        process_id=hello.process_id,
        tcp_port=hello.tcp_port,
        log_incarnation=_known(hello.log_incarnation_id),
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
    if value.tcp_port > _PORT_MAX:
        raise PeerProtocolError(f"port {value.tcp_port} in a hello")
    return Hello(
        cluster_id=codec.cluster_id_from_pb(value.cluster_id),
        key=ReplicaKey(node_id, codec.uuid_from_pb(value.directory_id)),
        config_digest=value.config_digest,
        frame_version_min=value.frame_version_min,
        frame_version_max=value.frame_version_max,
        process_id=value.process_id,
        log_incarnation_id=codec.uuid_from_pb(value.log_incarnation),
        tcp_port=value.tcp_port,
    )


class HelloProblem(NamedTuple):
    """Why two nodes must not talk."""

    text: str
    """A sentence for both operators."""
    code: ErrorCode = ErrorCode.NONE
    """Its error code, if it has one."""


def hello_problem(ours: Hello, theirs: Hello) -> HelloProblem | None:
    """Return why these two must not talk; None if they may.

    "Peer" is the author of ``theirs``.
    """
    text = _difference(ours, theirs)
    if text is not None:
        return HelloProblem(text)
    if is_other_log(ours.log_incarnation_id, theirs.log_incarnation_id):
        return HelloProblem(
            mismatch_text(
                f"the peer {_name(theirs)}",
                theirs.log_incarnation_id,
                _name(ours),
                ours.log_incarnation_id,
            ),
            ErrorCode.LOG_INCARNATION_MISMATCH,
        )
    text = _version_difference(ours, theirs)
    return None if text is None else HelloProblem(text)


def _difference(ours: Hello, theirs: Hello) -> str | None:
    if ours.key == theirs.key and ours.key.directory_id != ZERO_UUID:
        return OWN_ADDRESS
    if theirs.key.id != NO_NODE and (theirs.key.directory_id == ZERO_UUID or not theirs.process_id):
        # Without its disk it would pass for any disk of that number. Without its process it could
        # not be distinguished from another process that speaks for the same disk.
        return f"the peer {_name(theirs)} does not name its disk and its process"
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
    return None


def _version_difference(ours: Hello, theirs: Hello) -> str | None:
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


def is_other_log(ours: Uuid, theirs: Uuid) -> bool:
    """Whether a directory of another incarnation must not be talked to: records may differ."""
    return ours != theirs


def mismatch_text(peer: str, theirs: Uuid, own_name: str, ours: Uuid) -> str:
    """Return why two logs must not be mixed: both ids, and what to do."""
    return (
        f"{ErrorCode.LOG_INCARNATION_MISMATCH.name}: the directory of {peer} is of "
        f"{_incarnation(theirs)} of the log, that of "
        f"this node {own_name} of {_incarnation(ours)}. The log was recovered or restored, so "
        "their records may differ: move the directory that is left behind aside, and run `quorate "
        "format --no-initial-voters --log-incarnation ID` with the id of the log that goes on"
    )


def _incarnation(incarnation_id: Uuid) -> str:
    is_first = incarnation_id == ZERO_UUID
    return "the first incarnation" if is_first else f"incarnation {uuid_to_text(incarnation_id)}"


def _known(incarnation_id: Uuid) -> bytes:
    return b"" if incarnation_id == ZERO_UUID else incarnation_id


def _name(hello: Hello) -> str:
    return "(observer)" if hello.key.id == NO_NODE else str(hello.key.id)
