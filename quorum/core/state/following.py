"""The state of a replica that follows a leader: the peers that it may ask, and the download.

The open request is in ``PendingRequests.in_flight``.

Invariant: at most one download at a time, and at most one sealed snapshot that waits.

See: ``quorum.core.following``.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorum.config import QuorumConfig
from quorum.core.positions.download import Download, SealedSnapshot
from quorum.core.state.peers import PeerTable
from quorum.core.state.upstream import Upstream
from quorum.types import NodeId, SnapshotId

if TYPE_CHECKING:
    import random


@dataclass(slots=True)
class Following:
    """The peers to fetch from, and the one snapshot that may replace the log."""

    bootstrap_servers: tuple[NodeId, ...]
    """Peers of the configuration that may know the leader; never this node."""
    peers: PeerTable
    upstream: Upstream
    download: Download | None = None
    sealed_snapshot: SealedSnapshot | None = None
    """A downloaded and verified snapshot that has to replace the log."""

    @property
    def is_replacing_log(self) -> bool:
        """Whether a snapshot may be about to replace the log."""
        return self.download is not None or self.sealed_snapshot is not None

    def peer_failed(
        self, peer: NodeId, now_ms: int, config: QuorumConfig, rng: random.Random
    ) -> None:
        """Leave a peer alone for a while: it gave no useful answer to a Fetch or FetchSnapshot."""
        self.peers.failed(peer, now_ms)
        self.upstream.failed(peer, now_ms, config, rng)

    def end_download(self, snapshot_id: SnapshotId) -> Download | None:
        """Forget the download of ``snapshot_id`` and return it; None if it is not under way."""
        download = self.download
        if download is None or download.snapshot_id != snapshot_id:
            return None
        self.download = None
        return download
