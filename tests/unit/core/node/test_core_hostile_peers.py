"""No message may crash the core or break its promises, however senseless."""

from __future__ import annotations

import random
from collections.abc import Sequence

import pytest

from quorum.core.contract.events import MessageIgnored
from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message
from quorum.core.messages.read_messages import ReadRound
from quorum.core.messages.received_records import ReceivedRecords, VotersAt
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
    VoterChangeResponse,
)
from quorum.core.state.bootstrap_peer import VoterList
from quorum.errors import ErrorCode
from quorum.types import Endpoint, EpochStart, OffsetAndEpoch, ReplicaKey, Voter
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import FRESH, key, voter

INTEGERS = (-(1 << 63), -2, -1, 0, 1, 2, 3, 4, 5, 6, 7, 9, 100, (1 << 31) - 1, (1 << 63) - 1)
CODES = tuple(ErrorCode)


class Nonsense:
    """Messages with every field drawn on its own, now and then the one a node waits for."""

    def __init__(
        self, rng: random.Random, waiting: list[int], incarnations: Sequence[bytes] = ()
    ) -> None:
        self.rng = rng
        self.waiting = waiting
        self.incarnations = incarnations

    def number(self) -> int:
        return self.rng.choice(INTEGERS)

    def small(self) -> int:
        return self.rng.choice(INTEGERS[2:11])

    def request_id(self) -> int:
        if self.waiting and self.rng.random() < 0.6:
            return self.rng.choice(self.waiting)
        return self.number()

    def pair(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.rng.choice([self.small(), self.number()]), self.small())

    def replica(self) -> ReplicaKey:
        return self.rng.choice(
            [key(self.small() % 5), ReplicaKey(self.number()), ReplicaKey(self.small(), bytes(16))]
        )

    def cluster(self) -> str:
        return self.rng.choice([CLUSTER, CLUSTER, CLUSTER, "", "other"])

    def error(self) -> ErrorCode:
        return self.rng.choice([ErrorCode.NONE] * 3 + [self.rng.choice(CODES)])

    def records(self) -> ReceivedRecords | None:
        if self.rng.random() < 0.3:
            return None
        base = self.small()
        starts = sorted({base, base + self.rng.randrange(3)})
        epochs = tuple(EpochStart(self.small(), start) for start in starts)
        voters = (
            (VotersAt(self.small(), (voter(1), voter(self.rng.choice([1, 2])))),)
            if self.rng.random() < 0.3
            else ()
        )
        return ReceivedRecords(base, base + self.rng.randrange(4), epochs, voters, b"")

    def round(self) -> ReadRound:
        return ReadRound(self.small(), self.number())

    def message(self) -> Message:
        if self.rng.random() < 0.6:
            return self._about_elections()
        return self._about_records()

    def _about_elections(self) -> Message:
        maybe = self.rng.random() < 0.3
        match self.rng.randrange(12):
            case 0:
                return VoteRequest(
                    self.request_id(),
                    self.cluster(),
                    self.replica(),
                    self.replica(),
                    self.small(),
                    self.pair(),
                    maybe,
                )
            case 1:
                return VoteResponse(
                    self.request_id(), self.error(), self.small(), self.small(), maybe
                )
            case 2:
                return BeginQuorumEpochRequest(
                    self.request_id(), self.cluster(), self.replica(), self.replica(), self.small()
                )
            case 3:
                return BeginQuorumEpochResponse(
                    self.request_id(), self.error(), self.small(), self.number()
                )
            case 4:
                return EndQuorumEpochRequest(
                    self.request_id(),
                    self.cluster(),
                    self.replica(),
                    self.small(),
                    (self.replica(), self.replica()),
                )
            case 5:
                return EndQuorumEpochResponse(
                    self.request_id(), self.error(), self.small(), self.number()
                )
            case 6:
                return UpdateVoterRequest(
                    self.request_id(), self.cluster(), self.voter(), self.small()
                )
            case 7:
                return AddVoterRequest(
                    self.request_id(), self.cluster(), self.voter(), self.small()
                )
            case 8 | 9:
                return self._about_bootstrap()
            case 10:
                return RemoveVoterRequest(
                    self.request_id(), self.cluster(), self.replica(), self.replica(), self.small()
                )
            case _:
                return VoterChangeResponse(
                    self.request_id(), self.error(), self.small(), self.number()
                )

    def _about_bootstrap(self) -> Message:
        if self.rng.random() < 0.5:
            return BootstrapRequest(
                self.request_id(),
                self.cluster(),
                self.replica(),
                self.replica(),
                self.small(),
                self.incarnation(),
                self.voter_list(),
            )
        return BootstrapResponse(
            self.request_id(),
            self.error(),
            self.small(),
            self.small(),
            self.incarnation(),
            self.voter_list(),
        )

    def incarnation(self) -> bytes:
        return self.rng.choice([bytes(16), b"a" * 16, b"b" * 16, *self.incarnations])

    def voter_list(self) -> VoterList:
        if self.incarnations and self.rng.random() < 0.5:
            return tuple((each, self.rng.choice(self.incarnations)) for each in (1, 2, 3))
        ids = [self.rng.choice([1, 2, 3, self.number()]) for _ in range(self.rng.randrange(5))]
        return tuple((each, self.incarnation()) for each in self.rng.choice([ids, sorted(ids)]))

    def voter(self) -> Voter:
        entry = voter(self.small() % 5)
        if self.rng.random() < 0.5:
            return entry
        return Voter(
            self.replica(),
            tuple(
                Endpoint(self.rng.choice(["CONTROLLER", "", "X"]), "host", self.number())
                for _ in range(self.rng.randrange(3))
            ),
            self.number(),
            self.number(),
        )

    def _about_records(self) -> Message:
        maybe = self.rng.random() < 0.3
        match self.rng.randrange(4):
            case 0:
                return FetchRequest(
                    self.request_id(),
                    self.cluster(),
                    self.replica(),
                    self.small(),
                    self.number(),
                    self.small(),
                    self.number(),
                    self.number(),
                    self.number(),
                    self.round(),
                    is_disqualified=self.rng.random() < 0.2,
                    has_lost_records=self.rng.random() < 0.2,
                )
            case 1:
                return FetchResponse(
                    self.request_id(),
                    self.error(),
                    self.small(),
                    self.small(),
                    self.number(),
                    self.number(),
                    self.pair() if maybe else None,
                    self.pair() if self.rng.random() < 0.2 else None,
                    records=self.records(),
                    read_round=self.round(),
                )
            case 2:
                return FetchSnapshotRequest(
                    self.request_id(),
                    self.cluster(),
                    self.replica(),
                    self.small(),
                    self.pair(),
                    self.number(),
                    self.number(),
                    self.round(),
                    is_disqualified=self.rng.random() < 0.2,
                )
            case _:
                return FetchSnapshotResponse(
                    self.request_id(),
                    self.error(),
                    self.small(),
                    self.small(),
                    self.pair(),
                    self.number(),
                    self.number(),
                    chunk=bytes(self.rng.randrange(4)),
                )


@pytest.mark.parametrize("seed", range(30))
def test_no_message_crashes_a_node_or_breaks_its_invariants(seed: int) -> None:
    """Goal: totality. Method: throw nonsense at nodes in every role and check after each."""
    rng = random.Random(seed)
    cluster = CoreCluster(observers=(4,), seed=seed)
    if seed % 3:
        cluster.elect(1)
        cluster.propose(1, 3)
        cluster.settle()
    watermarks = dict.fromkeys(cluster.members, 0)
    epochs = dict.fromkeys(cluster.members, 0)
    for _ in range(600):
        node_id = rng.choice(sorted(cluster.members))
        node = cluster[node_id]
        waiting = [
            message.request_id
            for sender, _, message in cluster.queue[-8:]
            if sender == node_id and hasattr(message, "cluster_id")
        ]
        message = Nonsense(rng, waiting).message()
        sender = rng.choice([-2, -1, 1, 2, 3, 4, 99])
        cluster.call(node_id, lambda n, s=sender, m=message: n.receive(cluster.now_ms, s, m))
        assert node.log_start.offset <= node.high_watermark <= node.log_end_offset
        assert node.high_watermark >= watermarks[node_id]
        assert node.epoch >= epochs[node_id]
        watermarks[node_id], epochs[node_id] = node.high_watermark, node.epoch
        if rng.random() < 0.1:
            cluster.now_ms += rng.randrange(400)
            cluster.tick(node_id)
        if rng.random() < 0.1:
            cluster.deliver(count=3)
        del cluster.queue[:-50]


@pytest.mark.parametrize("seed", range(30))
def test_no_message_founds_a_quorum_twice_or_unbars_a_disk(seed: int) -> None:
    """Goal: an accepted voter list stays. Method: nonsense in epoch 0, with real incarnation ids.

    A voter list is accepted once, no node votes without one, and a disqualification is for ever.
    """
    rng = random.Random(seed)
    cluster = CoreCluster(seed=seed, disks=dict.fromkeys((1, 2, 3), FRESH))
    if seed % 3 == 0:
        cluster.deliver(count=rng.randrange(12))
    agreed: dict[int, VoterList] = {}
    disqualified: set[int] = set()
    for _ in range(300):
        node_id = rng.choice([1, 2, 3])
        elections = {each: cluster.members[each].disk.election for each in (1, 2, 3)}
        incarnations = [
            each.bootstrap_state.incarnation_id
            for each in elections.values()
            if each.bootstrap_state
        ]
        waiting = [
            message.request_id
            for sender, _, message in cluster.queue[-8:]
            if sender == node_id and hasattr(message, "cluster_id")
        ]
        nonsense = Nonsense(rng, waiting, incarnations)
        message = nonsense.message()
        sender = rng.choice([-2, 1, 2, 3, 4])
        if rng.random() < 0.3:
            # Well-formed, so that its incarnation ids are evaluated.
            asker = key(rng.choice([each for each in (1, 2, 3) if each != node_id]))
            incarnation, voter_list = nonsense.incarnation(), nonsense.voter_list()
            message = BootstrapRequest(7, CLUSTER, asker, key(node_id), 0, incarnation, voter_list)
        cluster.call(node_id, lambda n, s=sender, m=message: n.receive(cluster.now_ms, s, m))
        election = cluster.members[node_id].disk.election
        if election.bootstrap_state is not None and election.bootstrap_state.voter_list:
            assert (
                agreed.setdefault(node_id, election.bootstrap_state.voter_list)
                == election.bootstrap_state.voter_list
            )
        if election.disqualified:
            disqualified.add(node_id)
        assert bool(election.disqualified) == (node_id in disqualified)
        if node_id not in agreed or node_id in disqualified:
            assert election.voted is None
            assert not cluster[node_id].is_leader
        if rng.random() < 0.1:
            cluster.now_ms += rng.randrange(400)
            cluster.tick(node_id)
        if rng.random() < 0.1:
            cluster.deliver(count=3)
        del cluster.queue[:-50]


def test_something_that_is_no_message_is_ignored_as_a_violation() -> None:
    """Goal: totality beyond the message types. Method: hand in an object."""
    cluster = CoreCluster()
    output = cluster[1].receive(cluster.now_ms, 2, object())  # type: ignore[arg-type]
    assert [event.is_violation for event in output.events if isinstance(event, MessageIgnored)] == [
        True
    ]
