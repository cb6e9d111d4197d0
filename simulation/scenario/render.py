"""Messages and disk writes as lines. Equal runs give equal lines."""

from __future__ import annotations

from collections.abc import Iterable

from quorum.batch import scan_batches
from quorum.core.contract.output import (
    AbandonDownload,
    AdvanceLogStart,
    Append,
    BeginDownload,
    Effect,
    QuarantineLog,
    ReplaceLogWith,
    SaveElectionState,
    SealDownload,
    StoreHighWatermark,
    Truncate,
    WriteChunk,
)
from quorum.core.messages.bootstrap_messages import BootstrapRequest, BootstrapResponse
from quorum.core.messages.chain_messages import ChainDigestRequest, ChainDigestResponse
from quorum.core.messages.epoch_messages import (
    BeginQuorumEpochRequest,
    BeginQuorumEpochResponse,
    EndQuorumEpochRequest,
    EndQuorumEpochResponse,
)
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse, Subtree
from quorum.core.messages.message_types import Message
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
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
from quorum.types import BootstrapState, ElectionState

_NAMES: dict[type, str] = {
    BeginQuorumEpochRequest: "BeginQuorumEpoch",
    BeginQuorumEpochResponse: "BeginQuorumEpochResponse",
    EndQuorumEpochRequest: "EndQuorumEpoch",
    EndQuorumEpochResponse: "EndQuorumEpochResponse",
    FetchRequest: "Fetch",
    FetchResponse: "FetchResponse",
    FetchSnapshotRequest: "FetchSnapshot",
    FetchSnapshotResponse: "FetchSnapshotResponse",
    ReadPositionRequest: "ReadPosition",
    ReadPositionResponse: "ReadPositionResponse",
    BootstrapRequest: "Bootstrap",
    BootstrapResponse: "BootstrapResponse",
    VoteResponse: "VoteResponse",
    ChainDigestRequest: "ChainDigest",
    ChainDigestResponse: "ChainDigestResponse",
    UpdateVoterRequest: "UpdateVoter",
    AddVoterRequest: "AddVoter",
    RemoveVoterRequest: "RemoveVoter",
    VoterChangeResponse: "VoterChangeResponse",
}


def type_name(message: Message) -> str:
    """Return the name of a message in scripts; a pre-vote has its own name."""
    if isinstance(message, VoteRequest):
        return "PreVote" if message.pre_vote else "Vote"
    return _NAMES[type(message)]


def message_line(message: Message) -> str:
    """Return a message as text, without sender and receiver."""
    return f"{type_name(message)} {_fields(message)}"


def _fields(message: Message) -> str:  # noqa: C901, PLR0912 - one arm for each kind
    match message:
        case VoteRequest():
            return f"epoch={message.epoch} last={message.last}"
        case VoteResponse():
            check_result = "granted" if message.granted else "rejected"
            return _answer(message, "" if message.error else check_result)
        case BeginQuorumEpochRequest() | ReadPositionRequest():
            return f"epoch={message.epoch}"
        case EndQuorumEpochRequest():
            names = ",".join(str(key.id) for key in message.preferred_successors)
            return f"epoch={message.epoch} successors=({names})" + (
                " campaign=now" if message.campaign_now else ""
            )
        case BootstrapRequest():
            return f"epoch={message.epoch} {_voter_list(message.voter_list)}"
        case BootstrapResponse():
            return _answer(message, _voter_list(message.voter_list))
        case FetchRequest():
            disqualified = " disqualified" if message.is_disqualified else ""
            lost = " lost_records" if message.has_lost_records else ""
            return (
                f"epoch={message.epoch} offset={message.fetch_offset} "
                f"last_epoch={message.last_fetched_epoch} hw={message.high_watermark}"
                f"{_subtree(message.subtree)}{disqualified}{lost}"
            )
        case FetchResponse():
            return _fetch_response(message)
        case FetchSnapshotRequest():
            return f"epoch={message.epoch} {message.snapshot_id} position={message.position}"
        case FetchSnapshotResponse():
            return _answer(
                message,
                f"{message.snapshot_id} position={message.position} "
                f"bytes={len(message.chunk)} size={message.size}",
            )
        case UpdateVoterRequest() | AddVoterRequest():
            return f"epoch={message.epoch} voter={message.voter.key.id}"
        case RemoveVoterRequest():
            return f"epoch={message.epoch} voter={message.voter.id}"
        case VoterChangeResponse():
            return _answer(message, message.message)
        case ReadPositionResponse():
            return _answer(message, f"read_offset={message.read_offset}")
        case BeginQuorumEpochResponse() | EndQuorumEpochResponse():
            return _answer(message, "")
        case _:
            return _chain_fields(message)


def _chain_fields(message: ChainDigestRequest | ChainDigestResponse) -> str:
    if isinstance(message, ChainDigestRequest):
        return f"epoch={message.epoch} offsets=({_numbers(message.offsets)})"
    known = [point.offset for point in message.points]
    return _answer(message, f"boundaries=({_numbers(known)})")


def _numbers(values: Iterable[int]) -> str:
    return ",".join(str(each) for each in values)


def _answer(
    message: VoteResponse
    | FetchResponse
    | FetchSnapshotResponse
    | BeginQuorumEpochResponse
    | EndQuorumEpochResponse
    | ReadPositionResponse
    | ChainDigestResponse
    | VoterChangeResponse
    | BootstrapResponse,
    text: str,
) -> str:
    parts = [f"epoch={message.epoch}"]
    if message.error != ErrorCode.NONE:
        return f"{parts[0]} error={message.error.name} leader={_node(message.leader_id)}"
    if isinstance(message, VoteResponse):
        parts.append(f"leader={_node(message.leader_id)}")
    return " ".join([*parts, text] if text else parts)


def _fetch_response(message: FetchResponse) -> str:
    if message.diverging is not None:
        answer = f"diverging={message.diverging}"
    elif message.snapshot_id is not None:
        answer = f"snapshot={message.snapshot_id}"
    elif message.records:
        headers = scan_batches(message.records, verify_crc=False)
        answer = f"records=[{headers[0].base_offset},{headers[-1].end_offset})"
    else:
        answer = "records=0"
    route = ">".join(str(key.id) for key in message.path)
    relayed = f" path={route} age={message.contact_age_ms}" if route else ""
    return _answer(
        message,
        f"{answer} hw={message.high_watermark} lso={message.log_start_offset}{relayed}",
    )


def _subtree(subtree: Subtree | None) -> str:
    return "" if subtree is None else f" subtree={subtree.members} low={subtree.low}"


def _voter_list(voter_list: VoterList) -> str:
    return f"voter list=({','.join(str(key) for key, _ in voter_list)})" if voter_list else "fresh"


def _node(node_id: int) -> str:
    return "none" if node_id < 0 else str(node_id)


def election_text(state: ElectionState) -> str:
    """Return the contents of ``quorum-state`` as text."""
    voted = "none" if state.voted is None else str(state.voted.id)
    floor = "" if state.vote_floor is None else f" vote_floor={state.vote_floor}"
    bootstrap_state = (
        "" if state.bootstrap_state is None else f" {_bootstrap_state(state.bootstrap_state)}"
    )
    disqualified = " disqualified" if state.disqualified else ""
    election = f"epoch={state.epoch} leader={_node(state.leader_id)} voted={voted}"
    return f"{election}{floor}{bootstrap_state}{disqualified}"


def _bootstrap_state(bootstrap_state: BootstrapState) -> str:
    return (
        "bootstrapped" if bootstrap_state.is_complete else _voter_list(bootstrap_state.voter_list)
    )


def effect_text(effect: Effect) -> str:
    """Return one disk operation as text."""
    match effect:
        case SaveElectionState(state=state):
            return f"election {election_text(state)}"
        case Append():
            return f"append [{effect.base_offset},{effect.end_offset}) epoch={effect.epoch}"
        case Truncate():
            return f"truncate to {effect.end_offset}"
        case AdvanceLogStart():
            names = ",".join(str(each) for each in effect.delete)
            return f"log start {effect.start}" + (f" delete ({names})" if names else "")
        case BeginDownload():
            return f"begin download {effect.snapshot_id}"
        case WriteChunk():
            return f"write {effect.snapshot_id} at {effect.position} bytes={len(effect.chunk)}"
        case SealDownload():
            return f"seal {effect.snapshot_id}"
        case AbandonDownload():
            return f"abandon {effect.snapshot_id}"
        case ReplaceLogWith():
            return f"replace log with {effect.snapshot_id}"
        case StoreHighWatermark():
            return f"high watermark {effect.high_watermark}"
        case QuarantineLog():
            return f"quarantine from {effect.first_offset}"
