"""Broken replicas that resume a download that they must not resume."""

from __future__ import annotations

from quorum.core.following import fetching, snapshot_transfer
from quorum.core.state.core_state import CoreState
from quorum.types import NodeId, SnapshotId
from simulation.options import Options
from snapshot.download import Download, FoundDownload
from tests.simulation.zoo.bug import Bug, Patch


def download_resumed_unverified(patch: Patch) -> None:
    """A restart resumes a download behind unverified bytes of the part file."""

    def trust(download: Download) -> FoundDownload:
        return FoundDownload(download.snapshot_id, download.size_bytes, 0, "")

    patch.setattr(Download, "recover", trust)


def download_resumed_under_another_id(patch: Patch) -> None:
    """A restart resumes a download although the leader names another checkpoint."""
    begin_download = snapshot_transfer.begin_download

    def go_on(core: CoreState, source: NodeId, snapshot_id: SnapshotId) -> None:
        download = core.following.download
        if download is not None and download.is_unconfirmed:
            download.snapshot_id = snapshot_id
        begin_download(core, source, snapshot_id)

    patch.setattr(fetching, "begin_download", go_on)


BUGS = (
    Bug(
        "download-resumed-unverified",
        download_resumed_unverified,
        ("resumed-downloads",),
        "ADR 50; ALICE (OSDI 14): content that was never synced",
        options=Options("downloads"),
    ),
    Bug(
        "download-resumed-under-another-id",
        download_resumed_under_another_id,
        ("resumed-downloads",),
        "ADR 50; requirement 630.9: a file is of one SnapshotId",
        options=Options("downloads"),
    ),
)
