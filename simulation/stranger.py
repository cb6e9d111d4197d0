"""A process that is not a member: it forges election requests and answers requests sent to it.

It sends under an id of its own or in a member's name, with numbers at their limits and next to
those in use, and names its own address as the leader's. It never has a member's address, so all its
requests are marked as unproven, as the transport marks them (ADR 52).

It avoids three attacks, because nothing is promised against them without ``tls.node_name``
(docs/reference/protocol.md, "Trust"; ADR 44). What it acknowledges in a voter's name is committed
already. It does not lead a replica whose vote it got. It asks an observer for a vote in a
member's name only, and at most one epoch beyond all voters.
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

_ENDPOINTS = (
    Endpoint("CONTROLLER", "stranger", 1),
    Endpoint("SASL", "stranger", 3),
    Endpoint("CLIENT", "stranger", 2),
)
"""More listeners than a member has."""
_EPOCH_LAST = (1 << 31) - 2
_OFFSET_LAST = (1 << 63) - 1
_BROKER_CONFIG = 4


class Stranger:
    """The stranger of a run. Draws from ``rng`` only."""

    def __init__(
        self, cluster: Environment, members: Mapping[NodeId, Member], rng: random.Random
    ) -> None:
        self._cluster = cluster
        self._members = members
        self._rng = rng
        self._key = ReplicaKey(STRANGER, b"a stranger's dir")

    def forge_request(self, victim: Member) -> str:
        """Send ``victim`` a forged request; return its kind."""
        rng, replica = self._rng, victim.replica
        if replica is None:
            return ""
        others = [each.key for each in self._members.values() if each is not victim]
        author = rng.choice((self._key, *others))
        voted_id = replica.node.voted_id
        if voted_id == STRANGER:
            author = rng.choice(others) if others else victim.key
        elif voted_id == author.id and all(each.key.id != voted_id for each in replica.node.voters):
            # A member that got the vote by another forgery, and whose address no record names.
            author = victim.key
        epoch = self._epoch(replica.node.epoch)
        candidate = author
        if not replica.node.is_voter:
            author = self._key
            epoch = min(epoch, self._latest_epoch() + 1)
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
        is_hidden = candidate == self._key and not replica.node.is_voter
        called = ReplicaKey(NO_NODE) if is_hidden else voter
        cluster_id, number = self._cluster.cluster_id, rng.getrandbits(40)
        request: Request = rng.choice(
            (
                VoteRequest(number, cluster_id, candidate, called, epoch, last, pre_vote=False),
                VoteRequest(number, cluster_id, candidate, called, epoch, last, pre_vote=True),
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
        """Request another voter set from ``leader`` in some replica's name.

        Return the request's kind.

        The request claims that a voter, mostly one that is down, has moved to the stranger's
        address or has another disk; or that the stranger or a forged replica, there or at a
        member's address, wants to become a voter.
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
            # A replica must have caught up before it can become a voter.
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
        """A Fetch that claims in ``author``'s name to have all committed records."""
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
        """A bootstrap voter that claims to have agreed with forged incarnations."""
        rng = self._rng
        others = [each for each in self._cluster.voter_ids if rng.random() < 0.8]
        voter_list = tuple((each, rng.randbytes(16)) for each in others)
        return BootstrapRequest(
            number, self._cluster.cluster_id, author, victim.key, 0, rng.randbytes(16), voter_list
        )

    def _epoch(self, epoch: int) -> int:
        near = (epoch - 1, epoch, epoch, epoch + 1, epoch + 1, epoch + 2)
        return self._rng.choice((*near, _EPOCH_LAST - 1, _EPOCH_LAST, _EPOCH_LAST + 1))

    def _latest_epoch(self) -> int:
        """The latest epoch that a voter is in."""
        nodes = [each.replica.node for each in self._members.values() if each.replica is not None]
        return max((node.epoch for node in nodes if node.is_voter), default=0)

    def receive(self, sender: NodeId, to: NodeId, message: Message) -> None:
        """Receive a message to node ``to``, or the answer to a forged request."""
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
        """Mostly answer as a follower of the leader's own release does."""
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
