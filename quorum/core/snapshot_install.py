"""A downloaded snapshot takes the place of the log (630.9).

See: KIP-630 (630.9, 630.13); architecture 5.2 steps 7 and 8.
"""

from __future__ import annotations

from quorum.core.events import DownloadEnded
from quorum.core.messages import VotersAt
from quorum.core.notices import SnapshotFrozen, SnapshotRejected
from quorum.core.output import ReplaceLogWith, SnapshotInstalled
from quorum.core.roles import Candidate, Leader, Resigned
from quorum.core.state import CoreState
from quorum.core.trimming import delete_unneeded
from quorum.core.voters import VoterHistory
from quorum.types import SnapshotId


def on_snapshot_frozen(core: CoreState, notice: SnapshotFrozen) -> None:
    """A downloaded file is verified and durable; it takes the log's place when it may."""
    core.snapshots.add(notice.snapshot_id, notice.size, now_ms=core.now_ms)
    download = core.download
    if download is None or download.snapshot_id != notice.snapshot_id:
        return
    if not _are_usable(notice):
        core.download = None
        core.event(DownloadEnded(notice.snapshot_id, "its voters are not a voter set"))
        return
    download.is_frozen = True
    download.voters = notice.voters


def _are_usable(notice: SnapshotFrozen) -> bool:
    try:
        VoterHistory.of(notice.voters)
    except ValueError:
        return False
    return True


def on_snapshot_rejected(core: CoreState, notice: SnapshotRejected) -> None:
    """A downloaded file is not what it should be: ask the leader again after a pause."""
    download = core.download
    if download is not None and download.snapshot_id == notice.snapshot_id:
        core.download = None
        core.event(DownloadEnded(notice.snapshot_id, notice.reason))
        core.peers.failed(core.leader_id, core.now_ms)


def install_if_ready(core: CoreState) -> None:
    """Let a frozen snapshot replace the log (630.9).

    Not while this node asks for votes or leads: its position could fall below the one it
    asked with. The snapshot then waits for the next time it follows.
    """
    download = core.download
    if (
        download is None
        or not download.is_frozen
        or isinstance(core.role, Candidate | Leader | Resigned)
    ):
        return
    core.download = None
    snapshot_id = download.snapshot_id
    if snapshot_id.offset < core.high_watermark:
        core.event(DownloadEnded(snapshot_id, "the log has been committed beyond it"))
        return
    replace_log(core, snapshot_id, download.voters)
    core.event(DownloadEnded(snapshot_id, "installed"))


def replace_log(
    core: CoreState, snapshot_id: SnapshotId, voters: tuple[VotersAt, ...]
) -> None:
    """Start the log anew at a frozen snapshot: everything below it is committed."""
    core.log.replace_with(snapshot_id, core.effect(ReplaceLogWith(snapshot_id)))
    core.in_flight = None
    core.progress(SnapshotInstalled(snapshot_id))
    core.raise_high_watermark(snapshot_id.offset)
    if voters:
        core.voters = VoterHistory.of(voters)
        core.voters_changed()
    delete_unneeded(core)
