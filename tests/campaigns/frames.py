"""Mutated frames of the peer stream: every field of every message, and their bytes."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from quorum.core.messages.bootstrap_messages import BootstrapRequest
from quorum.core.messages.chain_messages import ChainDigestRequest
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, EndQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest, Subtree
from quorum.core.messages.message_types import Request
from quorum.core.messages.read_messages import ReadPositionRequest
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
)
from quorum.errors import QuorumUsageError
from quorum.transport.framing import encode_frame
from quorum.transport.hello import Hello, encode_hello
from quorum.transport.packing import HEADER
from quorum.types import Endpoint, OffsetAndEpoch, ReplicaKey, Voter
from quorum.v1 import raft_pb2
from tests.campaigns.mutations import damaged, some
from tests.campaigns.valid_calls import STRANGER, ClusterState
from tests.support.message_mutation import Mutator

FRAMES_PER_STREAM = 8
HELLOS_SHARE = 0.25
MUTATED_SHARE = 0.8
"""Share of a stream's requests that have a mutated field; the others have damaged bytes or none."""
DAMAGED_SHARE = 0.25
KINDS_MADE_UP_SHARE = 0.08


@dataclass(frozen=True, slots=True)
class Script:
    """The messages for one stream, hello first, each with a description."""

    hello: tuple[str, bytes]
    frames: tuple[tuple[str, bytes], ...]


def requests(cluster_state: ClusterState, sender: ReplicaKey) -> dict[type, Callable[[], Request]]:
    """Return one request of each type that a stream takes, valid except for its sender."""
    now, cluster = cluster_state.current, cluster_state.cluster_id
    leader = ReplicaKey(
        cluster_state.leader_id, dict(cluster_state.voters)[cluster_state.leader_id]
    )
    end, place = OffsetAndEpoch(now.offset, now.epoch), (Endpoint("CONTROLLER", "127.0.0.1", 9),)
    voter = Voter(sender, place)
    return {
        VoteRequest: lambda: VoteRequest(1, cluster, sender, leader, now.epoch + 1, end, False),
        BeginQuorumEpochRequest: lambda: BeginQuorumEpochRequest(
            2, cluster, leader, sender, now.epoch, place
        ),
        EndQuorumEpochRequest: lambda: EndQuorumEpochRequest(
            3, cluster, sender, now.epoch, (leader,), place
        ),
        FetchRequest: lambda: FetchRequest(
            4, cluster, sender, now.epoch, now.offset, now.epoch, subtree=Subtree(0, 1)
        ),
        FetchSnapshotRequest: lambda: FetchSnapshotRequest(
            5, cluster, sender, now.epoch, OffsetAndEpoch(0, 0), 0, 1000
        ),
        ReadPositionRequest: lambda: ReadPositionRequest(6, cluster, sender, now.epoch),
        ChainDigestRequest: lambda: ChainDigestRequest(7, cluster, sender, now.epoch, (0, 1)),
        BootstrapRequest: lambda: BootstrapRequest(8, cluster, sender, leader, 0, b"l" * 16),
        UpdateVoterRequest: lambda: UpdateVoterRequest(9, cluster, voter, now.epoch),
        AddVoterRequest: lambda: AddVoterRequest(10, cluster, voter, now.epoch),
        RemoveVoterRequest: lambda: RemoveVoterRequest(
            11, cluster, sender, ReplicaKey(sender.id, b"o" * 16), now.epoch
        ),
    }


class StreamScripts:
    """An endless supply of scripts, drawn from one random source.

    No script uses the whole key of a voter: mode ``insecure`` accepts it, outside the guarantees
    (docs/guarantees.md, Faults). A stream with a voter's id and another directory id is refused.
    """

    def __init__(
        self, cluster_state: ClusterState, config_digest: bytes, rng: random.Random
    ) -> None:
        self.cluster_state = cluster_state
        self._digest = config_digest
        self._rng = rng
        self._mutator = Mutator(rng)

    def __iter__(self) -> Iterator[Script]:
        while True:
            yield self.script()

    def script(self) -> Script:
        """One stream's."""
        rng = self._rng
        ids = (-1, STRANGER, STRANGER, rng.randrange(4, 1000), *dict(self.cluster_state.voters))
        sender = ReplicaKey(rng.choice(ids), rng.randbytes(16))
        made = Hello(
            self.cluster_state.cluster_id, sender, self._digest, process_id=rng.randbytes(16)
        )
        if rng.random() < HELLOS_SHARE:
            return Script(self._mutated_hello(encode_hello(made)), ())
        kinds = list(requests(self.cluster_state, sender).items())
        frames = tuple(self._frame(*rng.choice(kinds)) for _ in range(FRAMES_PER_STREAM))
        return Script(("hello", encode_hello(made)), frames)

    def _mutated_hello(self, frame: bytes) -> tuple[str, bytes]:
        value = raft_pb2.PeerHello.FromString(frame[HEADER.size :])
        label, data = some(value, self.cluster_state.current, self._rng)
        disks = dict(self.cluster_state.voters)
        try:
            peer_hello = raft_pb2.PeerHello.FromString(data)
        except Exception:
            peer_hello = value
        if disks.get(peer_hello.node_id) == peer_hello.directory_id:
            return "hello", frame
        return f"hello: {label}", frame[: HEADER.size] + data

    def _frame(self, kind: type, make: Callable[[], Request]) -> tuple[str, bytes]:
        rng = self._rng
        message: Any = make()
        label = kind.__name__
        if rng.random() < MUTATED_SHARE:
            # The sender is kept: another one ends the stream before the core sees the request.
            mutant = self._mutator.mutate(message)
            message = mutant
            label += " mutated"
        try:
            data = encode_frame(message)
        except (QuorumUsageError, ValueError, TypeError, AttributeError, OverflowError):
            # Our own encoder refuses this value, so the bytes are damaged instead.
            data = encode_frame(make())
            label, data = f"{kind.__name__} damaged", damaged(data, rng)[1]
        if rng.random() < DAMAGED_SHARE:
            words, data = damaged(data, rng)
            label += f", {words}"
        if data and rng.random() < KINDS_MADE_UP_SHARE:
            data = bytes([rng.randrange(256)]) + data[1:]
            label += f", kind {data[0]:#x}"
        return label, data
