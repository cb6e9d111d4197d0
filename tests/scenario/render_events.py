"""What a node decided and why, as one line per event of the core."""

from __future__ import annotations

from quorum.core.events import (
    ChunkReceived,
    DownloadEnded,
    DownloadStarted,
    Event,
    FetchClassified,
    LeaderLost,
    LogDiverged,
    LogStartAdvanced,
    MessageIgnored,
    RecordsAppended,
    ReplicaRegressed,
    RequestRefused,
    RoleChanged,
    StandingRefused,
    TruncationRefused,
    VoteDecided,
    VoteFloorReached,
    VoterSetChanged,
    WatermarkMoved,
)


def event_line(event: Event) -> str:
    """One event without the node it happened on."""
    match event:
        case RoleChanged():
            leader = f" leader={event.leader_id}" if event.leader_id >= 0 else ""
            return f"{event.before} -> {event.role} epoch={event.epoch}{leader} ({event.reason})"
        case VoteDecided():
            kind = "pre-vote" if event.pre_vote else "vote"
            verdict = "granted" if event.granted else f"rejected: {event.reason}"
            return f"{kind} of {event.candidate.id} in epoch {event.epoch} {verdict}"
        case FetchClassified():
            return (
                f"classify {event.replica.id} offset={event.offset} "
                f"last_epoch={event.last_fetched_epoch} -> {event.answer} {event.detail}"
            )
        case RequestRefused():
            return f"refused {event.request} of {event.sender}: {event.error.name}"
        case MessageIgnored():
            mark = " (violation)" if event.is_violation else ""
            return f"ignored {event.message} of {event.sender}: {event.reason}{mark}"
        case RecordsAppended():
            return f"appended [{event.base_offset},{event.end_offset}) epoch={event.epoch}"
        case LogDiverged():
            return (
                f"log cut to {event.end_offset}, was {event.old_end}, "
                f"leader said {event.leader_said}"
            )
        case WatermarkMoved():
            return f"high watermark {event.before} -> {event.high_watermark}"
        case TruncationRefused():
            return f"truncation to {event.asked_end} refused: high watermark {event.high_watermark}"
        case ReplicaRegressed():
            return (
                f"replica {event.replica.id} fetched {event.fetch_offset} "
                f"after acknowledging {event.acknowledged}"
            )
        case StandingRefused():
            return f"may not stand in epoch {event.epoch}: {event.reason}"
        case VoteFloorReached():
            return f"vote floor {event.floor} reached at {event.log_end}"
        case LeaderLost():
            return f"leader {event.leader_id} of epoch {event.epoch} is gone"
        case VoterSetChanged():
            names = ",".join(str(each) for each in event.voters)
            return f"voters ({names}) at {event.offset}"
        case _:
            return _snapshot_line(event)


def _snapshot_line(
    event: DownloadStarted | ChunkReceived | DownloadEnded | LogStartAdvanced,
) -> str:
    match event:
        case DownloadStarted():
            return f"download {event.snapshot_id} from {event.leader_id} begins"
        case ChunkReceived():
            end = event.position + event.chunk_bytes
            return f"download {event.snapshot_id} has {end} of {event.size} bytes"
        case DownloadEnded():
            return f"download {event.snapshot_id} ends: {event.outcome}"
        case LogStartAdvanced():
            return f"log start {event.start}"
