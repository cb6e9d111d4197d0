"""Settings of the consensus core: timers in milliseconds, sizes in bytes, named bounds.

Read by ``quorum.core`` and ``quorum.runtime``. Reading files, environment and flags is
``quorate.config``'s work; this type only says what a valid setting is.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quorum.errors import ConfigError
from quorum.ranges import BYTES_MAX, CENTURY_MS, COUNT_MAX, HOUR_MS, Range, out_of_range

PAYLOAD_BYTES_MAX = (16 << 20) - (64 << 10)
"""Most record or checkpoint bytes of one answer: what a message between peers holds beside its
header."""
ANSWERS_BYTES_MAX = 48 << 20
"""Most checkpoint bytes one replica may have asked for at a time; what answers a stream queues
beyond its own bound is dropped."""

RELAY_HOPS_MAX = 64
"""Most relays that an answer can name on its way."""

_WAIT = Range(1, HOUR_MS)
_WAIT_OR_NONE = Range(0, HOUR_MS)
_AGE = Range(1, CENTURY_MS)
_PAYLOAD = Range(1, PAYLOAD_BYTES_MAX)
_COUNT = Range(1, COUNT_MAX)

RANGES: Final[Mapping[str, Range]] = {
    "election_timeout_ms": _WAIT,
    "fetch_timeout_ms": _WAIT,
    "election_backoff_max_ms": _WAIT,
    "fetch_max_wait_ms": _WAIT_OR_NONE,
    "high_watermark_delay_ms": _WAIT_OR_NONE,
    "append_delay_ms": _WAIT_OR_NONE,
    "fetch_bytes_max": _PAYLOAD,
    "snapshot_chunk_bytes": _PAYLOAD,
    "snapshot_response_bytes_max": _PAYLOAD,
    "request_timeout_ms": _WAIT,
    "retry_backoff_ms": _WAIT_OR_NONE,
    "lost_leader_jitter_ms": _WAIT_OR_NONE,
    "lost_leader_retry_ms": _WAIT,
    "transfer_timeout_ms": _WAIT,
    "disk_stall_ms": _AGE,
    "process_pause_ms": _WAIT_OR_NONE,
    "observer_session_ms": _AGE,
    "start_offset_lag_max_ms": _AGE,
    "observers_max": _COUNT,
    "held_fetches_max": _COUNT,
    "uncommitted_bytes_max": Range(1, BYTES_MAX),
    "pending_reads_max": _COUNT,
    "high_watermark_store_ms": _WAIT,
    "relay_hops_max": Range(1, RELAY_HOPS_MAX),
    "relay_age_max_ms": _WAIT,
    "relay_patience_ms": _WAIT,
    "relay_retry_ms": _WAIT,
    "unwritten_chunks_max": Range(1, 1024),
    "snapshot_requests_max": Range(1, 64),
}
"""Every number of ``QuorumConfig``."""


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    """Everything the core may be tuned by. ``validate`` reports all problems at once."""

    election_timeout_ms: int = 1000
    """Base of the randomised election timer: uniform in [E, 2E)."""
    fetch_timeout_ms: int = 2000
    """A voter follower without a successful Fetch for this long asks for pre-votes. The leader
    resigns after 1.5 times this without a majority fetching."""
    election_backoff_max_ms: int = 1000
    fetch_max_wait_ms: int = 500
    """How long a leader may hold a Fetch that has nothing to return."""
    high_watermark_delay_ms: int = 10
    """How long a replica's held Fetch may go unanswered although the high watermark has risen.
    Records that follow within this time carry the news along, which halves the messages of a
    lone writer; 0 tells it at once. A follower whose image nobody waits for lets commits gather
    for as long before it applies them."""
    append_delay_ms: int = 10
    """How long a leader may keep new records from a replica that no commit waits for, so that it
    fetches several lone writes at a time; 0 serves everybody at once (ADR 34)."""
    fetch_bytes_max: int = 1 << 20
    snapshot_chunk_bytes: int = 1 << 20
    snapshot_response_bytes_max: int = 10 << 20
    """``replica.fetch.response.max.bytes``: checkpoint bytes of one FetchSnapshot answer, all
    partitions together (630.11)."""
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    lost_leader_jitter_ms: int = 100
    """After a refused reconnect to the leader a voter waits uniform [0, this) (ADR 8)."""
    lost_leader_retry_ms: int = 150
    """Upper bound of the random pause after a rejected or split round in that mode."""
    transfer_timeout_ms: int = 500
    """How long a leader that hands over may keep writes waiting before it leads on."""
    disk_stall_ms: int = 2000
    """A disk that completes nothing for this long, with writes outstanding, is taken as hung:
    the node resigns, and neither stands nor votes until it goes on."""
    process_pause_ms: int = 250
    """A node that comes this late to a timer of its own stood still: the silence of the others was
    its own, and they are given a moment more; 0 never thinks so."""
    observer_session_ms: int = 300_000
    """A replica without Fetch or FetchSnapshot for this long is no longer *live* (630.5)."""
    start_offset_lag_max_ms: int = 7 * 24 * 3600 * 1000
    """``metadata.start.offset.lag.time.max.ms``: hold a snapshot this long, then trim anyway."""
    observers_max: int = 10_000
    held_fetches_max: int = 10_000
    uncommitted_bytes_max: int = 128 << 20
    pending_reads_max: int = 100_000
    high_watermark_store_ms: int = 1000
    """How far the high watermark's side file may lag behind; it is only a lower bound."""
    relay_hops_max: int = 4
    """Most relays between an observer and the leader; longer chains are refused."""
    relay_age_max_ms: int = 5_000
    """A relay that cannot tell that its leader led within this time stops serving."""
    relay_patience_ms: int = 1000
    """An observer whose relays all fail asks the leader after uniform [this, twice this)."""
    relay_retry_ms: int = 5_000
    """While it fetches from the leader an observer tries its relays this often."""
    unwritten_chunks_max: int = 8
    """Downloaded snapshot chunks that may wait for the disk before the next is asked for."""

    snapshot_requests_max: int = 3
    """FetchSnapshot requests under way at once; more than one hides the way there and back."""

    auto_join: bool = False
    """An observer asks to become a voter, and removes an older entry of its number first."""

    @property
    def fetch_jitter_ms(self) -> int:
        """Bound (exclusive) of what each follower adds to ``fetch_timeout_ms``, at least 1.

        With it a follower's fetch timer stays below ``check_quorum_ms``: a leader that lost its
        majority is replaced before it resigns.
        """
        return max(1, self.fetch_timeout_ms // 8)

    @property
    def check_quorum_ms(self) -> int:
        """How long a leader bears that no majority fetches from it, before it resigns."""
        return self.fetch_timeout_ms * 3 // 2

    def problems(self) -> list[str]:
        """Every setting that cannot work, as one sentence each; empty when all can."""
        return out_of_range(self, RANGES) + self._contradictions()

    def _contradictions(self) -> list[str]:
        """Settings that are possible each, and not together."""
        found = []
        if self.fetch_max_wait_ms >= self.fetch_timeout_ms:
            found.append(
                f"fetch_max_wait_ms ({self.fetch_max_wait_ms}) must be below fetch_timeout_ms "
                f"({self.fetch_timeout_ms}), or an idle leader looks dead"
            )
        if 5 * self.request_timeout_ms < 6 * self.fetch_max_wait_ms:
            found.append(
                f"request_timeout_ms ({self.request_timeout_ms}) must be at least a fifth above "
                f"fetch_max_wait_ms ({self.fetch_max_wait_ms}), or answers that were held are "
                "given up on their way"
            )
        if self.observer_session_ms <= self.fetch_max_wait_ms:
            found.append(
                f"observer_session_ms ({self.observer_session_ms}) must be above fetch_max_wait_ms "
                f"({self.fetch_max_wait_ms}), or a replica is called gone while its Fetch is held"
            )
        if self.snapshot_requests_max * self.snapshot_chunk_bytes > ANSWERS_BYTES_MAX:
            found.append(
                f"snapshot_requests_max times snapshot_chunk_bytes must be at most "
                f"{ANSWERS_BYTES_MAX}, not {self.snapshot_requests_max} times "
                f"{self.snapshot_chunk_bytes}"
            )
        return found

    def validate(self) -> None:
        """Check all settings together.

        Raises:
            ConfigError: With every problem found.
        """
        found = self.problems()
        if found:
            raise ConfigError(found)
