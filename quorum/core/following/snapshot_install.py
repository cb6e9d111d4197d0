"""Replacement of the log by a downloaded snapshot (630.9).

See: KIP-630 (630.9, 630.13); docs/architecture.md (A replica that fell behind).
"""

from __future__ import annotations

from quorum.core.contract.events import DownloadEnded
from quorum.core.contract.local_events import SnapshotRejected, SnapshotSealed
from quorum.core.contract.outcomes import DownloadOutcome
from quorum.core.contract.output import ReplaceLogWith, SnapshotInstalled
from quorum.core.following.relaying import source_of_records
from quorum.core.messages.received_records import VotersAt
from quorum.core.positions.download import SealedSnapshot, replaces_log
from quorum.core.protocol.role_transitions import new_ballots
from quorum.core.replication.trimming import delete_unneeded
from quorum.core.state.core_state import CoreState
from quorum.core.state.peer_requests import Purpose
from quorum.core.state.roles import Candidate, Leader, Prospective, Resigned
from quorum.core.voters.voter_set import VoterHistory
from quorum.types import SnapshotId


def on_snapshot_sealed(core: CoreState, local_event: SnapshotSealed) -> None:
    """Process a verified, durable download: keep it for installation if the log needs it.

    The decision depends on the log alone, even if the download is no longer wanted. A snapshot
    newer than the log must be installed before this node campaigns with that position.
    """
    snapshot_id = local_event.snapshot_id
    core.following.end_download(snapshot_id)
    if not replaces_log(core.log, core.high_watermark, snapshot_id):
        core.snapshots.add(snapshot_id, local_event.size, now_ms=core.now_ms)
        core.event(DownloadEnded(snapshot_id, DownloadOutcome.NOT_NEEDED))
        return
    try:
        VoterHistory.of(local_event.voters)
    except ValueError as error:
        core.event(DownloadEnded(snapshot_id, DownloadOutcome.UNUSABLE_VOTERS, str(error)))
        core.peer_failed(source_of_records(core))
        return
    sealed = SealedSnapshot(snapshot_id, local_event.voters, local_event.size)
    core.following.sealed_snapshot = sealed


def on_snapshot_rejected(core: CoreState, local_event: SnapshotRejected) -> None:
    """Process a corrupt download: ask for it again after a back-off.

    There is no back-off if its beginning was found at start, which need not be the sender's fault.
    The next download begins at byte 0, so this happens at most once per process run.
    """
    download = core.following.end_download(local_event.snapshot_id)
    if download is not None:
        flight = core.requests.in_flight
        if flight is not None and flight.purpose is Purpose.FETCH_SNAPSHOT:
            core.requests.end_flight()
        core.event(
            DownloadEnded(local_event.snapshot_id, DownloadOutcome.REJECTED, local_event.reason)
        )
        if not download.found_bytes:
            core.peer_failed(source_of_records(core))


def install_if_ready(core: CoreState) -> None:
    """Replace the log by a sealed snapshot (630.9).

    Not while this node is a candidate or leads: its position could fall below the one in its vote
    requests. The snapshot then waits for the next other role.
    """
    following = core.following
    sealed = following.sealed_snapshot
    if sealed is None or isinstance(core.role, Candidate | Leader | Resigned):
        return
    following.sealed_snapshot = None
    core.snapshots.add(sealed.snapshot_id, sealed.size, now_ms=core.now_ms)
    if not replaces_log(core.log, core.high_watermark, sealed.snapshot_id):
        core.event(DownloadEnded(sealed.snapshot_id, DownloadOutcome.NOT_NEEDED))
        return
    replace_log(core, sealed.snapshot_id, sealed.voters)
    if isinstance(core.role, Prospective):
        # The voters have changed; a pre-vote promises nothing, so the ballots can be new.
        core.role.ballots = new_ballots(core)
    core.event(DownloadEnded(sealed.snapshot_id, DownloadOutcome.INSTALLED))


def replace_log(core: CoreState, snapshot_id: SnapshotId, voters: tuple[VotersAt, ...]) -> None:
    """Restart the log at a sealed snapshot: all records below it are committed."""
    core.log.replace_with(snapshot_id, core.effect(ReplaceLogWith(snapshot_id)))
    core.requests.end_flight()
    core.progress(SnapshotInstalled(snapshot_id))
    core.raise_high_watermark(snapshot_id.offset)
    if voters:
        core.voters = VoterHistory.of(voters)
        core.voters_changed()
    elif core.voters.truncate_to(snapshot_id.offset):
        # The voter sets of the old log from here on are gone with it, committed or not.
        core.voters_changed()
    delete_unneeded(core)
