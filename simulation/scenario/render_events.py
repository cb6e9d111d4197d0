"""Events of the core as lines: what a node decided and why."""

from __future__ import annotations

from quorum.core.contract.events import (
    BootstrapVotersAgreed,
    CampaignRefused,
    CheckpointFailed,
    ChunkReceived,
    DamageSuspected,
    DigestDiffers,
    DigestNotComparable,
    DiskRecovered,
    DiskStalled,
    DivergenceResolutionEnded,
    DivergenceResolutionStarted,
    DownloadEnded,
    DownloadStarted,
    Event,
    FetchClassified,
    LeaderLost,
    LogDiverged,
    LogQuarantined,
    LogStartAdvanced,
    MessageIgnored,
    ObserverStranded,
    ProcessPaused,
    QuorumBootstrapped,
    RecordsAppended,
    ReplicaRegressed,
    RequestRefused,
    RoleChanged,
    SelfRegistrationAnswered,
    SelfRegistrationAsked,
    TransferEnded,
    TransferStarted,
    TruncationRefused,
    UpstreamChanged,
    VoteDecided,
    VoteFloorReached,
    VoterChangeEnded,
    VoterChangeStarted,
    VoterDisqualified,
    VoterSetChanged,
    VotesNoMore,
    WatermarkMoved,
)
from quorum.types import NodeId


def event_line(event: Event) -> str:  # noqa: C901, PLR0912 - one arm for each kind
    """Return one event as text, without its node."""
    match event:
        case RoleChanged():
            leader = f" leader={event.leader_id}" if event.leader_id >= 0 else ""
            return f"{event.before} -> {event.role} epoch={event.epoch}{leader} ({_why(event)})"
        case VoteDecided():
            kind = "pre-vote" if event.pre_vote else "vote"
            check_result = "granted" if event.granted else f"rejected: {_why(event)}"
            return f"{kind} for {event.candidate.id} in epoch {event.epoch} {check_result}"
        case FetchClassified():
            return (
                f"classify {event.replica.id} offset={event.offset} "
                f"last_epoch={event.last_fetched_epoch} -> {event.answer} {event.detail}"
            )
        case RequestRefused():
            return f"refused {event.request} from {event.sender}: {event.error.name}"
        case MessageIgnored():
            mark = " (violation)" if event.is_violation else ""
            return f"ignored {event.message} from {event.sender}: {_why(event)}{mark}"
        case RecordsAppended():
            return f"appended [{event.base_offset},{event.end_offset}) epoch={event.epoch}"
        case LogDiverged():
            cut = f"log truncated from {event.old_end} to {event.end_offset}"
            return f"{cut}, leader reported {event.leader_reported}"
        case WatermarkMoved():
            return f"high watermark {event.before} -> {event.high_watermark}"
        case TruncationRefused():
            return f"truncation to {event.asked_end} refused: high watermark {event.high_watermark}"
        case ReplicaRegressed():
            return (
                f"replica {event.replica.id} fetched {event.fetch_offset} "
                f"after acknowledging {event.acknowledged}"
            )
        case ObserverStranded():
            return _stranded_line(event)
        case CampaignRefused():
            return f"may not campaign in epoch {event.epoch}: {_why(event)}"
        case VoteFloorReached():
            return f"vote floor {event.floor} reached at {event.log_end}"
        case BootstrapVotersAgreed() | QuorumBootstrapped() | VoterDisqualified():
            return _bootstrap_line(event)
        case LeaderLost():
            return f"lost leader {event.leader_id} of epoch {event.epoch}"
        case CheckpointFailed():
            return f"no checkpoint {event.snapshot_id} for {event.retry_ms} ms: {event.cause}"
        case (
            VoterSetChanged()
            | VoterChangeStarted()
            | VoterChangeEnded()
            | SelfRegistrationAsked()
            | SelfRegistrationAnswered()
            | VotesNoMore()
        ):
            return _voter_line(event)
        case TransferStarted() | TransferEnded():
            return _transfer_line(event)
        case ProcessPaused() | DiskStalled() | DiskRecovered():
            return _process_pause_line(event)
        case (
            DigestDiffers()
            | DigestNotComparable()
            | DivergenceResolutionStarted()
            | DivergenceResolutionEnded()
            | DamageSuspected()
            | LogQuarantined()
        ):
            return _chain_line(event)
        case _:
            return _source_line(event)


def _why(
    event: RoleChanged | VoteDecided | MessageIgnored | CampaignRefused | VoterDisqualified,
) -> str:
    if isinstance(event, RoleChanged):
        return event.reason if event.peer < 0 else f"{event.reason} from {event.peer}"
    return f"{event.reason} ({event.detail})" if event.detail else f"{event.reason}"


def _stranded_line(event: ObserverStranded) -> str:
    proven = "" if event.is_proven else ", unproven"
    where = f"observer {event.replica.id} in epoch {event.epoch}"
    return f"{where} cannot follow epoch {event.leader_epoch}{proven}"


def _transfer_line(event: TransferStarted | TransferEnded) -> str:
    if isinstance(event, TransferEnded):
        return f"transfer to {event.target.id} ends: {event.outcome} {event.detail}".rstrip()
    observer = event.observer
    purpose = "" if observer is None else f", for observer {observer.id}"
    return f"transfers leadership to {event.target.id} at log end {event.end_offset}{purpose}"


def _bootstrap_line(event: BootstrapVotersAgreed | QuorumBootstrapped | VoterDisqualified) -> str:
    match event:
        case BootstrapVotersAgreed():
            return f"bootstrap voters agreed: {_names(event.voters)}"
        case QuorumBootstrapped():
            return f"quorum bootstrapped: {_names(event.voters)}"
        case VoterDisqualified():
            return f"disqualified from voting in epoch {event.epoch}: {_why(event)}"


def _process_pause_line(event: ProcessPaused | DiskStalled | DiskRecovered) -> str:
    match event:
        case ProcessPaused():
            return f"process paused for {event.late_ms} ms: peers get time to answer"
        case DiskStalled():
            return f"disk stalled: no write completed for {event.waited_ms} ms"
        case DiskRecovered():
            return f"disk recovered after {event.waited_ms} ms"


def _chain_line(
    event: DigestDiffers
    | DigestNotComparable
    | DivergenceResolutionStarted
    | DivergenceResolutionEnded
    | DamageSuspected
    | LogQuarantined,
) -> str:
    match event:
        case DigestDiffers():
            return f"digest of {event.replica.id} at {event.offset} differs"
        case DigestNotComparable():
            return f"digest of {event.replica.id} at {event.offset} cannot be compared"
        case DivergenceResolutionStarted():
            return (
                f"divergence with {event.conflicting_peer} below {event.end_offset}: {event.reason}"
            )
        case DivergenceResolutionEnded():
            where = f" (first different offset {event.first_offset})" * (event.first_offset >= 0)
            return f"divergence with {event.conflicting_peer} resolved: {event.outcome}{where}"
        case DamageSuspected():
            if event.is_acted_on:
                return f"damage found, scans its log: {event.cause}"
            return f"damage found, continues because no other node can take over: {event.cause}"
        case LogQuarantined():
            return f"log quarantined from {event.first_offset}, vote floor {event.vote_floor}"


def _names(node_ids: tuple[NodeId, ...]) -> str:
    return f"({','.join(str(each) for each in node_ids)})"


def _source_line(
    event: UpstreamChanged | DownloadStarted | ChunkReceived | DownloadEnded | LogStartAdvanced,
) -> str:
    match event:
        case UpstreamChanged():
            route = "".join(f" > relay {each}" for each in event.path)
            return f"fetches from {event.peer}{route or ' > leader'}"
        case DownloadStarted():
            how = f"resumes at {event.position}" if event.position else "begins"
            return f"download {event.snapshot_id} from {event.leader_id} {how}"
        case ChunkReceived():
            end = event.position + event.chunk_bytes
            return f"download {event.snapshot_id} has {end} of {event.size} bytes"
        case DownloadEnded():
            return f"download {event.snapshot_id} ends: {event.outcome} {event.detail}".rstrip()
        case LogStartAdvanced():
            return f"log start {event.start}"


def _voter_line(
    event: VoterSetChanged
    | VoterChangeStarted
    | VoterChangeEnded
    | SelfRegistrationAsked
    | SelfRegistrationAnswered
    | VotesNoMore,
) -> str:
    match event:
        case VoterSetChanged():
            names = ",".join(str(each) for each in event.voters)
            return f"voters ({names}) at {event.offset}"
        case VoterChangeStarted():
            return f"{event.change} voter {event.voter.id} begins"
        case VoterChangeEnded():
            at = f" at {event.offset}" if event.offset >= 0 else ""
            why = f" ({event.reason})" if event.reason else ""
            return f"{event.change} voter {event.voter.id}{at} ends: {event.error.name}{why}"
        case SelfRegistrationAsked():
            return f"asks {event.leader_id} to {event.change} its registration"
        case SelfRegistrationAnswered():
            why = f" ({event.message})" if event.message else ""
            return f"self registration: {event.error.name}{why}"
        case VotesNoMore():
            return f"does not vote: {event.reason}"
