"""Requests that a script forges: what no correct peer would send."""

from __future__ import annotations

from quorum.core.messages.bootstrap_messages import BootstrapRequest
from quorum.core.messages.chain_messages import ChainDigestRequest
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, EndQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.message_types import Request
from quorum.core.messages.read_messages import ReadPositionRequest, ReadRound
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest
from quorum.core.messages.vote_messages import VoteRequest
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
)
from quorum.types import NO_NODE, ZERO_UUID, Endpoint, NodeId, OffsetAndEpoch, ReplicaKey, Voter
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.member import CLUSTER_ID, key_of


def forged_request(
    kind: str, request_id: int, sender: NodeId, to: NodeId, args: Arguments
) -> Request:
    """Return the request that the arguments of ``send`` describe.

    Raises:
        ScenarioError: There is no such request, or an argument is missing.
    """
    cluster = args.text("cluster", CLUSTER_ID)
    replica = key_of(sender, args.number("from_disk", 0)) if sender >= 0 else ReplicaKey(NO_NODE)
    epoch = args.number("epoch")
    match kind:
        case "Fetch":
            return FetchRequest(
                request_id,
                cluster,
                replica,
                epoch,
                args.number("offset"),
                args.number("last_epoch"),
                args.number("hw", -1),
                args.number("wait", 0),
                read_round=_round(args),
                is_disqualified=args.text("disqualified") == "yes",
            )
        case "FetchSnapshot":
            return FetchSnapshotRequest(
                request_id,
                cluster,
                replica,
                epoch,
                position_of(args, "snapshot"),
                args.number("position"),
                args.number("bytes", 1 << 20),
            )
        case "ReadPosition":
            return ReadPositionRequest(request_id, cluster, replica, epoch)
        case "ChainDigest":
            return ChainDigestRequest(request_id, cluster, replica, epoch, args.numbers("offsets"))
        case "AddVoter" | "UpdateVoter" | "RemoveVoter":
            return _about_voters(kind, request_id, cluster, replica, epoch, args)
    return _between_voters(kind, request_id, cluster, replica, epoch, to, args)


def _between_voters(
    kind: str,
    request_id: int,
    cluster: str,
    replica: ReplicaKey,
    epoch: int,
    to: NodeId,
    args: Arguments,
) -> Request:
    voter = key_of(args.number("voter", to), args.number("voter_disk", 0))
    match kind:
        case "Vote" | "PreVote":
            return VoteRequest(
                request_id,
                cluster,
                replica,
                voter,
                epoch,
                position_of(args, "last"),
                pre_vote=kind == "PreVote",
            )
        case "BeginQuorumEpoch":
            endpoints = endpoints_of(args)
            return BeginQuorumEpochRequest(request_id, cluster, voter, replica, epoch, endpoints)
        case "EndQuorumEpoch":
            return EndQuorumEpochRequest(
                request_id,
                cluster,
                replica,
                epoch,
                tuple(key_of(each) for each in args.numbers("successors")),
                campaign_now=args.text("campaign") == "now",
            )
        case "Bootstrap":
            incarnation_id = ZERO_UUID if args.text("incarnation") == "none" else b"\3" * 16
            return BootstrapRequest(request_id, cluster, replica, voter, epoch, incarnation_id)
    raise ScenarioError(f"send: no request is called {kind}")


def _about_voters(
    kind: str, request_id: int, cluster: str, replica: ReplicaKey, epoch: int, args: Arguments
) -> Request:
    key = key_of(args.number("voter", replica.id), args.number("disk", 0))
    if kind == "RemoveVoter":
        own = key_of(replica.id, args.number("own_disk", 0))
        return RemoveVoterRequest(request_id, cluster, own, key, epoch)
    voter = Voter(key, endpoints_of(args, f"node{key.id}"), 0, 1)
    request = AddVoterRequest if kind == "AddVoter" else UpdateVoterRequest
    return request(request_id, cluster, voter, epoch)


def endpoints_of(args: Arguments, host: str = "") -> tuple[Endpoint, ...]:
    """Return the endpoint given by ``at=HOST port=N``; none without a host."""
    host, port = args.text("at", host), args.number("port", 9093)
    return (Endpoint("CONTROLLER", host, port),) if host else ()


def _round(args: Arguments) -> ReadRound:
    """Return the read round that the request echoes: ``round=EPOCH/NUMBER``."""
    epoch, _, number = args.text("round", "0/0").partition("/")
    return ReadRound(args.number_in("an epoch", epoch), args.number_in("a number", number))


def position_of(args: Arguments, key: str) -> OffsetAndEpoch:
    """Return the position given by ``KEY=OFFSET/EPOCH``."""
    offset, slash, epoch = args.text(key).partition("/")
    if not slash:
        raise ScenarioError(f"{args.name} needs {key}= with a position such as 5/1")
    return OffsetAndEpoch(args.number_in("an offset", offset), args.number_in("an epoch", epoch))
