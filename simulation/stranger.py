"""A process that is no member: it forges requests of elections, and answers whoever asks it.

It speaks under a number of its own or in a member's name, with numbers at their limits and next to
those in use, and names its own address as the leader's. Nobody meets it at a member's address, so
all its requests are marked as unproven, as the transport marks them (ADR 52). Three things it does
not do, because in plain mode nothing is promised against them (docs/reference/protocol.md, "Trust";
ADR 44): what it acknowledges in a voter's name is committed already, it does not lead whom it has
got a vote from, and it asks no observer for a vote in a voter's name or by the observer's own.
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Final

from quorate.replica.replica import Replica
from quorum.batch import encode_batch
from quorum.core.messages.bootstrap_messages import BootstrapRequest
from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message, Request
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
)
from quorum.core.voters.versions import OWN_KRAFT_VERSIONS
from quorum.errors import ErrorCode
from quorum.types import (
    NO_NODE,
    DigestAt,
    Endpoint,
    NodeId,
    OffsetAndEpoch,
    ReplicaKey,
    Voter,
)
from simulation.environment import ANONYMOUS, STRANGER, Environment
from simulation.harness.arrival import arrived
from simulation.member import Member
from statemachine.codec import encode_record
from statemachine.records import ConfigRecord

ADDRESS: Final = "stranger:1"

_ENDPOINTS = (Endpoint("CONTROLLER", "stranger", 1),)
_EPOCH_LAST = (1 << 31) - 2
_OFFSET_LAST = (1 << 63) - 1
_BROKER_CONFIG = 4


class Stranger:
    """Draws from ``rng`` only."""

    def __init__(
        self, cluster: Environment, members: Mapping[NodeId, Member], rng: random.Random
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._rng = rng
        self._key = ReplicaKey(STRANGER, b"a stranger's dir")

    def forge_request(self, victim: Member) -> str:
        """Send ``victim`` a request that nobody asked for; its kind."""
        rng, replica = self._rng, victim.replica
        if replica is None:
            return ""
        others = [each.key for each in self._members.values() if each is not victim]
        author = rng.choice((self._key, *others))
        if replica.node.voted_id == STRANGER:
            author = rng.choice(others) if others else victim.key
        elif not replica.node.is_voter:
            author = self._key
        epoch = self._epoch(replica.node.epoch)
        end = replica.node.log_end
        last = rng.choice(
            (
                OffsetAndEpoch(0, 0),
                end,
                OffsetAndEpoch(end.offset + 1, max(end.epoch, epoch - 1)),
                OffsetAndEpoch(_OFFSET_LAST, max(epoch - 1, 0)),
            )
        )
        voter = rng.choice((victim.key, ReplicaKey(NO_NODE)))
        called = voter if replica.node.is_voter else ReplicaKey(NO_NODE)
        cluster_id, number = self._cluster.cluster_id, rng.getrandbits(40)
        request: Request = rng.choice(
            (
                VoteRequest(number, cluster_id, author, called, epoch, last, pre_vote=False),
                VoteRequest(number, cluster_id, author, called, epoch, last, pre_vote=True),
                BeginQuorumEpochRequest(number, cluster_id, voter, author, epoch, _ENDPOINTS),
                EndQuorumEpochRequest(
                    number,
                    cluster_id,
                    author,
                    epoch,
                    (victim.key,),
                    _ENDPOINTS,
                    campaign_now=rng.random() < 0.3,
                ),
                ChainDigestRequest(number, cluster_id, author, epoch, (0, _OFFSET_LAST)),
                self._acknowledgement(number, victim, replica, author),
                self._bootstrap_state(number, victim, author),
            )
        )
        victim.receive(rng.choice((author.id, ANONYMOUS)), arrived(request, is_proven=False))
        return type(request).__name__

    def forge_change(self, leader: Member) -> str:
        """Ask ``leader`` for another voter set in somebody's name; the request's kind.

        A voter, mostly one that is down, is said to be at the stranger's address or to have another
        disk; the stranger or a made-up replica wants to vote, there or at a member's address.
        """
        rng, replica = self._rng, leader.replica
        if replica is None:
            return ""
        node, number = replica.node, rng.getrandbits(40)
        cluster_id, epoch = self._cluster.cluster_id, rng.choice((node.epoch,) * 9 + (0,))
        others = [each for each in node.voters if each.key.id != leader.id]
        is_down = [each for each in others if not self._members[each.key.id].is_up]
        voter = rng.choice(is_down or others or node.voters)
        made_up = ReplicaKey(rng.choice((voter.key.id, rng.randrange(20, 30))), rng.randbytes(16))
        request: UpdateVoterRequest | AddVoterRequest | RemoveVoterRequest
        kind = rng.randrange(3)
        if kind == 0:
            key = rng.choice((voter.key, voter.key, voter.key, made_up))
            request = UpdateVoterRequest(number, cluster_id, self._entry(key, _ENDPOINTS), epoch)
        elif kind == 1:
            key = rng.choice((self._key, self._key, made_up))
            endpoints = rng.choice((_ENDPOINTS, _ENDPOINTS, voter.endpoints))
            request = AddVoterRequest(number, cluster_id, self._entry(key, endpoints), epoch)
        else:
            author = ReplicaKey(voter.key.id, made_up.directory_id)
            request = RemoveVoterRequest(number, cluster_id, author, voter.key, epoch)
        if isinstance(request, AddVoterRequest) and request.voter.key == self._key:
            # A voter to be has to be level first.
            level = self._acknowledgement(number + 1, leader, replica, self._key)
            leader.receive(STRANGER, arrived(level, is_proven=False))
        sender = voter.key.id if kind != 1 else STRANGER
        leader.receive(rng.choice((sender, ANONYMOUS)), arrived(request, is_proven=False))
        return type(request).__name__

    @staticmethod
    def _entry(key: ReplicaKey, endpoints: tuple[Endpoint, ...]) -> Voter:
        kraft = OWN_KRAFT_VERSIONS
        return Voter(key, endpoints, kraft.lowest, kraft.highest)

    def _acknowledgement(
        self, number: int, victim: Member, replica: Replica, author: ReplicaKey
    ) -> FetchRequest:
        """A Fetch by which ``author`` has all that is committed, whatever is on its disk."""
        node, rng = replica.node, self._rng
        return FetchRequest(
            number,
            self._cluster.cluster_id,
            author if author != victim.key else self._key,
            node.epoch,
            max(0, rng.choice((node.high_watermark, node.high_watermark - 1))),
            max(0, rng.choice((node.epoch, node.log_end.epoch))),
            is_disqualified=rng.random() < 0.1,
            has_lost_records=rng.random() < 0.1,
        )

    def _bootstrap_state(self, number: int, victim: Member, author: ReplicaKey) -> BootstrapRequest:
        """A bootstrap voter that has agreed to lives of which one at least is made up."""
        rng = self._rng
        others = [each for each in self._cluster.voter_ids if rng.random() < 0.8]
        voter_list = tuple((each, rng.randbytes(16)) for each in others)
        return BootstrapRequest(
            number, self._cluster.cluster_id, author, victim.key, 0, rng.randbytes(16), voter_list
        )

    def _epoch(self, epoch: int) -> int:
        near = (epoch - 1, epoch, epoch, epoch + 1, epoch + 1, epoch + 2)
        return self._rng.choice((*near, _EPOCH_LAST - 1, _EPOCH_LAST, _EPOCH_LAST + 1))

    def receive(self, sender: NodeId, to: NodeId, message: Message) -> None:
        """A member takes this process for node ``to``, or answers what it never asked."""
        answer = self._answer(to, message)
        if answer is not None:
            self._cluster.happened("forged-answer")
            self._members[sender].receive(to, arrived(answer))

    def _answer(self, to: NodeId, message: Message) -> Message | None:
        rng = self._rng
        match message:
            case FetchRequest():
                return self._fetched(to, message)
            case ChainDigestRequest():
                points = tuple(DigestAt(each, b"\x5a" * 32) for each in message.offsets)
                return ChainDigestResponse(
                    message.request_id,
                    ErrorCode.NONE,
                    to,
                    message.epoch,
                    message.offsets,
                    points,
                    leader_endpoints=_ENDPOINTS,
                    replica=self._key_of(to),
                )
            case VoteRequest():
                epoch = rng.choice((message.epoch, self._epoch(message.epoch)))
                return VoteResponse(
                    message.request_id, ErrorCode.NONE, NO_NODE, epoch, granted=True
                )
            case BeginQuorumEpochRequest():
                return self._begun(to, message)
            case EndQuorumEpochRequest():
                epoch = self._epoch(message.epoch)
                return EndQuorumEpochResponse(message.request_id, ErrorCode.NONE, to, epoch)
            case _:
                return None

    def _begun(self, to: NodeId, asked: BeginQuorumEpochRequest) -> BeginQuorumEpochResponse:
        """Mostly what a replica answers that follows, of its leader's own release."""
        number, leader = asked.request_id, self._members[asked.leader.id].replica
        if leader is None or self._rng.random() < 0.2:
            return BeginQuorumEpochResponse(number, ErrorCode.NONE, to, self._epoch(asked.epoch))
        supported = leader.node._core.process.versions.supported  # noqa: SLF001
        return BeginQuorumEpochResponse(
            number, ErrorCode.NONE, asked.leader.id, asked.epoch, supported=supported
        )

    def _fetched(self, to: NodeId, asked: FetchRequest) -> FetchResponse:
        rng, start = self._rng, asked.fetch_offset
        error = rng.choice(
            (
                ErrorCode.NONE,
                ErrorCode.NONE,
                ErrorCode.DIGEST_MISMATCH,
                ErrorCode.REPLICA_REGRESSED,
                ErrorCode.NOT_LEADER_OR_FOLLOWER,
            )
        )
        if error is not ErrorCode.NONE:
            return FetchResponse(
                asked.request_id, error, to, asked.epoch, leader_endpoints=_ENDPOINTS
            )
        value = encode_record(ConfigRecord(_BROKER_CONFIG, "", "log.retention.ms", "666"))
        records = encode_batch([value], base_offset=start, epoch=asked.epoch, timestamp=1)
        return FetchResponse(
            asked.request_id,
            error,
            to,
            asked.epoch,
            high_watermark=start + rng.choice((0, 1)),
            records=records,
            leader_endpoints=_ENDPOINTS,
        )

    def _key_of(self, node_id: NodeId) -> ReplicaKey:
        member = self._members.get(node_id)
        return self._key if member is None else member.key
