"""Responses that a script forges: what no correct peer would send."""

from __future__ import annotations

from quorum.core.messages.epoch_messages import BeginQuorumEpochResponse, EndQuorumEpochResponse
from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.message_types import Response
from quorum.core.messages.read_messages import ReadPositionResponse
from quorum.core.messages.vote_messages import VoteResponse
from quorum.errors import ErrorCode
from quorum.types import NO_NODE
from simulation.scenario.forged_requests import endpoints_of, position_of
from simulation.scenario.grammar import Arguments, ScenarioError


def forged_answer(kind: str, request_id: int, epoch: int, args: Arguments) -> Response:
    """Return the response to a request of this kind that the arguments of ``answer`` describe.

    Raises:
        ScenarioError: No response of that kind can be forged, or an argument is invalid.
    """
    name = args.text("error", ErrorCode.NONE.name)
    if name not in ErrorCode.__members__:
        raise ScenarioError(f"answer: no error is called {name}")
    error, leader = ErrorCode[name], args.number("leader", NO_NODE)
    epoch = args.number("epoch", epoch)
    endpoints = endpoints_of(args)
    match kind:
        case "Vote" | "PreVote":
            granted = args.text("granted") == "yes"
            return VoteResponse(request_id, error, leader, epoch, granted, endpoints)
        case "BeginQuorumEpoch":
            return BeginQuorumEpochResponse(request_id, error, leader, epoch, endpoints)
        case "EndQuorumEpoch":
            return EndQuorumEpochResponse(request_id, error, leader, epoch, endpoints)
        case "ReadPosition":
            read_offset = args.number("read", -1)
            return ReadPositionResponse(request_id, error, leader, epoch, read_offset, endpoints)
        case "Fetch":
            return FetchResponse(
                request_id,
                error,
                leader,
                epoch,
                args.number("hw", -1),
                args.number("start", 0),
                position_of(args, "diverging") if args.text("diverging") else None,
                leader_endpoints=endpoints,
            )
    raise ScenarioError(f"answer: no response to a {kind} can be forged")
