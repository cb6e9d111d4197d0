"""The follower's side of FetchSnapshot: positions and decisions, without reading bytes.

There is one ``Download`` at a time, with several chunks under way (``chunk_requests``). Meanwhile
FetchSnapshot replaces Fetch, so nothing is acknowledged. The runtime seals a complete file, and
``snapshot_install`` installs it.

See: KIP-630 (630.9, 630.12); docs/architecture.md (A replica that fell behind).
"""

from __future__ import annotations

from quorum.core.contract.events import (
    ChunkReceived,
    DownloadEnded,
    DownloadStarted,
    TruncationRefused,
)
from quorum.core.contract.local_events import PartialDownload
from quorum.core.contract.outcomes import DownloadOutcome
from quorum.core.contract.output import AbandonDownload, BeginDownload, SealDownload, WriteChunk
from quorum.core.contract.reasons import IgnoreReason
from quorum.core.following.chunk_requests import (
    forget_chunk,
    request_chunk,
    unwritten_chunks,
    wait_for_next,
)
from quorum.core.messages.snapshot_messages import FetchSnapshotResponse
from quorum.core.positions.download import RESTING, Download, replaces_log
from quorum.core.protocol.refusals import ignore
from quorum.core.protocol.responses import learn_from_response, note_leader_contact, take_in_flight
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.roles import Follower
from quorum.core.state.timers import Timer
from quorum.errors import ErrorCode
from quorum.types import NodeId, SnapshotId

_CONTACTS_PER_FETCH_TIMEOUT = 4


def why_not_download(core: CoreState, snapshot_id: SnapshotId) -> str:
    """Return why this replica cannot need the snapshot that a leader offers; empty if it may."""
    if snapshot_id.offset < 1 or not 0 < snapshot_id.epoch <= core.epoch:
        return f"snapshot {snapshot_id} in epoch {core.epoch}"
    if snapshot_id.offset < core.high_watermark:
        core.event(TruncationRefused(snapshot_id.offset, core.high_watermark))
        return f"snapshot {snapshot_id} below high watermark {core.high_watermark}"
    committed_epoch = core.log.epochs.epoch_before(core.high_watermark)
    if snapshot_id.epoch < committed_epoch:
        # Epochs do not fall along a log, so the leader's log lacks a record committed here.
        return f"snapshot {snapshot_id} after a committed record of epoch {committed_epoch}"
    if not replaces_log(core.log, core.high_watermark, snapshot_id):
        return f"snapshot {snapshot_id}, a position that this log has"
    return ""


def begin_download(core: CoreState, source: NodeId, snapshot_id: SnapshotId) -> None:
    """Begin to download a snapshot, or resume one begun under an earlier leader or process."""
    download = core.following.download
    if download is not None and download.snapshot_id == snapshot_id:
        download.epoch = core.epoch
        if download.is_unconfirmed:
            core.event(DownloadStarted(snapshot_id, source, download.position))
        return
    abandon_download(core, DownloadOutcome.SUPERSEDED, str(snapshot_id))
    core.following.download = Download(snapshot_id, core.epoch)
    core.effect(BeginDownload(snapshot_id))
    core.event(DownloadStarted(snapshot_id, source))


def take_up_download(core: CoreState, found: PartialDownload) -> None:
    """Keep the download of an earlier process run at start, if the log may still need it."""
    core.following.download = Download.found(found)
    if not replaces_log(core.log, core.high_watermark, found.snapshot_id):
        abandon_download(core, DownloadOutcome.NOT_NEEDED)


def abandon_download(core: CoreState, outcome: DownloadOutcome, detail: str = "") -> None:
    """Drop the download if there is one."""
    download = core.following.download
    if download is not None:
        core.following.download = None
        core.effect(AbandonDownload(download.snapshot_id))
        core.event(DownloadEnded(download.snapshot_id, outcome, detail))


def is_downloading(core: CoreState, peer: NodeId) -> bool:
    """Whether a download of this epoch continues with ``peer``, the leader or a relay."""
    role, download = core.role, core.following.download
    return (
        download is not None
        and download.epoch == core.epoch
        and isinstance(role, Follower)
        and (role.leader_id == peer or core.following.upstream.is_relay(peer))
    )


def is_waiting_for_disk(core: CoreState, download: Download) -> bool:
    """Whether so many chunks wait for the disk that the next one must not be requested yet."""
    return unwritten_chunks(core, download) >= core.config.unwritten_chunks_max


def poll_download(core: CoreState, peer: NodeId) -> bool:
    """Request the next chunk; return True if a plain Fetch should be sent instead.

    Such Fetches keep contact with the leader while a complete file is being verified. They
    acknowledge only the present log.
    """
    download = core.following.download
    if download is None:
        return True
    if download.is_complete:
        if core.now_ms < download.contact_due_ms:
            return False
        core.fired(Timer.DOWNLOAD_CONTACT)
        download.contact_due_ms = _next_contact_ms(core)
        return True
    if is_waiting_for_disk(core, download):
        return False
    core.requests.begin_flight(
        request_chunk(core, peer, download, download.position, core.config.snapshot_chunk_bytes)
    )
    return False


def _next_contact_ms(core: CoreState) -> int:
    return core.now_ms + max(1, core.config.fetch_timeout_ms // _CONTACTS_PER_FETCH_TIMEOUT)


def on_fetch_snapshot_response(
    core: CoreState, sender: NodeId, response: FetchSnapshotResponse
) -> None:
    """Process a chunk, or go back to Fetch."""
    flight = take_in_flight(core, sender, response, Purpose.FETCH_SNAPSHOT)
    if flight is None:
        # The answer of an earlier request came later: this chunk must be requested again.
        forget_chunk(core, response.request_id)
        return
    epoch = core.epoch
    is_current = learn_from_response(core, sender, response)
    role, download = core.role, core.following.download
    if core.epoch != epoch or not isinstance(role, Follower) or download is None:
        return
    if response.error in (ErrorCode.SNAPSHOT_NOT_FOUND, ErrorCode.POSITION_OUT_OF_RANGE):
        if is_current:
            note_leader_contact(core, role, flight.peer, response.read_round)
        abandon_download(core, DownloadOutcome.REFUSED, response.error.name)
        return
    if not is_current or response.error != ErrorCode.NONE:
        download.epoch = RESTING
        core.peer_failed(flight.peer)
        return
    problem = download.problem_with(response)
    if problem:
        ignore(core, sender, response, IgnoreReason.BAD_CHUNK, problem, is_violation=True)
        core.peer_failed(flight.peer)
        return
    note_leader_contact(core, role, flight.peer, response.read_round)
    if download.is_another_file(response):
        # No peer is at fault, but a chunk from the middle of another file is of no use.
        core.event(DownloadEnded(download.snapshot_id, DownloadOutcome.ANOTHER_FILE))
        download.restart()
        core.effect(BeginDownload(download.snapshot_id))
        core.event(DownloadStarted(download.snapshot_id, flight.peer))
        return
    _take_chunk(core, download, response)
    wait_for_next(core, flight, download)


def _take_chunk(core: CoreState, download: Download, response: FetchSnapshotResponse) -> None:
    snapshot_id, chunk = download.snapshot_id, response.chunk
    download.unwritten.append(core.effect(WriteChunk(snapshot_id, download.position, chunk)))
    core.event(ChunkReceived(snapshot_id, download.position, len(chunk), response.size))
    download.size = response.size
    download.file_digest = response.file_digest
    download.chunk_bytes = len(chunk)
    download.position += len(chunk)
    if download.is_complete:
        core.effect(SealDownload(snapshot_id, download.file_digest))
        download.contact_due_ms = _next_contact_ms(core)
