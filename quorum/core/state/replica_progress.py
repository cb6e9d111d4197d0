"""What a leader knows of each replica: how far it has fetched, and when its last request came.

Plain data and the rules for one replica at a time. Whose progress counts for what is decided
in ``fetch_serving`` (high watermark), ``leadership_term`` (check quorum) and ``trimming`` (630.5).

See: KIP-595 (DescribeQuorum), KIP-836 (last fetch and last caught-up times).
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

from quorum.core.messages.fetch_messages import Subtree
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.types import Epoch, ReplicaKey, VersionRange

VERSIONS_KNOWN_MS = 60_000
"""How long a voter's reported versions are trusted; then the leader asks again."""


@dataclass(slots=True)
class ReplicaProgress:
    """One replica as its leader sees it. Times are monotonic milliseconds, -1 for never."""

    key: ReplicaKey
    is_voter: bool
    live_since_ms: int
    """Last sign of life by Fetch or FetchSnapshot; for a voter at first the leadership term's
    start.
    """
    end_offset: int = -1
    """Acknowledged log end (exclusive): all below it is on that replica's disk."""
    proven_end: int = -1
    """The same, by a Fetch that certainly came from that replica: what it is held to (ADR 52)."""
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    leader_end_at_fetch: int = -1
    download_end: int = -1
    """End offset of the snapshot it is downloading; -1 when it is not."""
    read_round: int = 0
    """Latest read round of this epoch that it has echoed."""
    compared_end: int = -1
    """Up to here its log digest was found equal to ours in this leadership term."""
    is_incomparable: bool = False
    """Whether it was reported that digests cannot be compared."""
    subtree: Subtree | None = None
    """What the observers need that fetch through it; None for one that is no relay."""
    is_disqualified: bool = False
    """Whether its last Fetch reported that its disk never votes (``bootstrapping``)."""
    supported: tuple[VersionRange, ...] | None = None
    """Its supported versions as last reported; None if not reported in this leadership term."""
    supported_ms: int = -VERSIONS_KNOWN_MS
    """When it reported them."""
    begin: PeerRequest = field(init=False)
    """The BeginQuorumEpoch to a voter; due again after a while, answered or not."""

    def __post_init__(self) -> None:
        self.begin = PeerRequest(self.key.id, Purpose.BEGIN_EPOCH)

    def note_fetch(
        self, offset: int, *, now_ms: int, leader_end: int, is_proven: bool = True
    ) -> None:
        """Record a Fetch whose position lies in the leader's log.

        Caught up means: now at the leader's end, or at least where that end was at the
        previous Fetch, which then is the time that counts.
        """
        if offset >= leader_end:
            self.last_caught_up_ms = now_ms
        elif offset >= self.leader_end_at_fetch:
            self.last_caught_up_ms = max(self.last_caught_up_ms, self.last_fetch_ms)
        self.leader_end_at_fetch = leader_end
        self.last_fetch_ms = now_ms
        self.end_offset = offset
        if is_proven:
            self.proven_end = offset
        self.download_end = -1

    def note_supported(self, supported: tuple[VersionRange, ...], *, now_ms: int) -> None:
        """Record the versions that a Fetch or a BeginQuorumEpoch response reported."""
        self.supported = supported
        self.supported_ms = now_ms

    def note_subtree(self, subtree: Subtree | None) -> None:
        """Take a relay's report; routes that it leaves out are unchanged."""
        if subtree is not None and not subtree.links and self.subtree is not None:
            subtree = replace(subtree, links=self.subtree.links)
        self.subtree = subtree

    @property
    def trim_position(self) -> int:
        """What the log must keep for it: where it fetches, or the end of its download; for a
        relay, what anybody in its subtree needs.

        A position that only an unproven Fetch names is not where it fetches, if it was ever proven.
        """
        end = self.end_offset if self.proven_end < 0 else min(self.end_offset, self.proven_end)
        own = max(end, self.download_end)
        return own if self.subtree is None else min(own, self.subtree.low)


@dataclass(slots=True)
class Ahead:
    """An observer that asks a leader in a later epoch. Times are monotonic milliseconds."""

    key: ReplicaKey
    epoch: Epoch
    since_ms: int
    """When this leader first refused it, or refused a proven Fetch of it."""
    last_ms: int
    is_proven: bool
    """Whether its Fetch certainly came from this replica (ADR 52)."""


@dataclass(frozen=True, slots=True)
class ReplicaView:
    """One line of describe-quorum. Offsets -1 for unknown, times in monotonic ms, -1 for never."""

    key: ReplicaKey
    is_voter: bool
    log_end_offset: int
    last_fetch_ms: int
    last_caught_up_ms: int
    subtree: Subtree | None = None
    """For a relay: the observers that fetch through it, as it reported them."""
    compared_end: int = -1
    """Up to here its log digest was found equal to the leader's in this leadership term."""
    is_disqualified: bool = False
    """Whether the disk with this key never votes. A voter's self registration shows it too."""
    supported: tuple[VersionRange, ...] | None = None
    """The versions that it last reported; None if it reported none in this leadership term."""
