"""Settings of the consensus core: timers in milliseconds, sizes in bytes, named bounds.

``quorum.core`` and ``quorum.runtime`` read them. ``quorate.config`` parses files, environment and
flags; this type only defines valid settings.
"""

from __future__ import annotations

from dataclasses import dataclass

from quorum.errors import ConfigError
from quorum.setting import AGE, BYTES, COUNT, WAIT, WAIT_OR_NONE, Range, out_of_range, setting

PAYLOAD_BYTES_MAX = (16 << 20) - (64 << 10)
"""Bound of record or checkpoint bytes in one answer: a peer message without its header."""
ANSWERS_BYTES_MAX = 48 << 20
"""Bound of checkpoint bytes that one replica may have requested at a time; answers beyond the bound
of a stream's queue are dropped."""

RELAY_HOPS_MAX = 64
"""Bound of relays in the route of an answer."""

_PAYLOAD = Range(1, PAYLOAD_BYTES_MAX)


@dataclass(frozen=True, slots=True)
class QuorumConfig:
    """All tunable settings of the core. ``validate`` reports all problems at once."""

    election_timeout_ms: int = setting(
        1000, "Base of the election timer, drawn from [E, 2E).",
        WAIT, kafka="controller.quorum.election.timeout.ms",
    )  # fmt: skip
    fetch_timeout_ms: int = setting(
        2000, "Without a successful fetch for this long a voter campaigns. A leader from which no "
        "majority fetches resigns after 1.5 times this.",
        WAIT, kafka="controller.quorum.fetch.timeout.ms",
    )  # fmt: skip
    election_backoff_max_ms: int = setting(
        1000, "Longest pause of a preferred successor.",
        WAIT, kafka="controller.quorum.election.backoff.max.ms",
    )  # fmt: skip
    fetch_max_wait_ms: int = setting(
        500, "How long an empty fetch is held.", WAIT_OR_NONE, kafka="(fixed at 500)"
    )
    high_watermark_delay_ms: int = setting(
        10,
        "How long replicas may wait for the notification of a commit that no new records follow, "
        "and with applying it while no read waits.",
        WAIT_OR_NONE,
    )
    """Bound of the delay of a held Fetch's answer after the high watermark has risen. Records
    that follow within this time carry the new high watermark, which halves the messages of a lone
    writer; 0 answers at once. A follower whose image no reader waits for gathers commits for as
    long before it applies them."""
    append_delay_ms: int = setting(
        10, "How long new records may wait for replicas that no commit waits for.", WAIT_OR_NONE
    )
    """How long a leader may withhold new records from a replica that no commit waits for, so that
    the replica fetches several lone writes at a time; 0 answers all replicas at once (ADR 34)."""
    fetch_bytes_max: int = setting(
        1 << 20, "Record bytes of one fetch between replicas.",
        _PAYLOAD, kafka="controller.quorum.fetch.max.bytes",
    )  # fmt: skip
    snapshot_chunk_bytes: int = setting(
        1 << 20, "Bytes of one chunk of a checkpoint.",
        _PAYLOAD, kafka="controller.quorum.fetch.snapshot.max.bytes",
    )  # fmt: skip
    snapshot_response_bytes_max: int = setting(
        10 << 20, "Checkpoint bytes of one FetchSnapshot answer, all partitions together.",
        _PAYLOAD, kafka="replica.fetch.response.max.bytes",
    )  # fmt: skip
    request_timeout_ms: int = setting(
        2000, "Time limit for a peer's answer.",
        WAIT, kafka="controller.quorum.request.timeout.ms",
    )  # fmt: skip
    retry_backoff_ms: int = setting(
        20, "Pause after a failed answer.", WAIT_OR_NONE, kafka="controller.quorum.retry.backoff.ms"
    )
    lost_leader_jitter_ms: int = setting(
        100, "Random pause after the leader's process was found dead.", WAIT_OR_NONE
    )
    lost_leader_retry_ms: int = setting(
        150, "Longest pause between fail-fast election rounds.", WAIT
    )
    transfer_timeout_ms: int = setting(
        500, "How long a leadership transfer may delay writes before the leader continues.", WAIT
    )
    disk_stall_ms: int = setting(
        2000, "A disk that completes no write for this long counts as hung: the node resigns.",
        AGE,
    )  # fmt: skip
    process_pause_ms: int = setting(
        250, "A node this late for its own timer waits a little longer for the others; 0: never.",
        WAIT_OR_NONE,
    )  # fmt: skip
    observer_session_ms: int = setting(
        300_000, "A replica silent for this long no longer counts as live.",
        AGE, kafka="(fixed at 5 min)",
    )  # fmt: skip
    start_offset_lag_max_ms: int = setting(
        7 * 24 * 3600 * 1000, "Hold the log for slow replicas at most this long.",
        AGE, kafka="metadata.start.offset.lag.time.max.ms",
    )  # fmt: skip
    observers_max: int = setting(10_000, "Observers that a leader keeps track of.", COUNT)
    held_fetches_max: int = setting(10_000, "Fetches held at the same time.", COUNT)
    uncommitted_bytes_max: int = setting(
        128 << 20, "Bytes a leader appends beyond the high watermark.", BYTES
    )
    pending_reads_max: int = setting(100_000, "Linearizable reads waiting for confirmation.", COUNT)
    high_watermark_store_ms: int = setting(
        1000, "How far the stored high watermark may lag behind.", WAIT
    )
    relay_hops_max: int = setting(
        4, "Most relays between an observer and the leader.", Range(1, RELAY_HOPS_MAX)
    )
    relay_age_max_ms: int = setting(
        5_000, "A relay without proof that the leader led within this time stops serving.", WAIT
    )
    relay_patience_ms: int = setting(
        1000, "An observer whose relays all fail asks the leader after this time to twice this.",
        WAIT,
    )  # fmt: skip
    relay_retry_ms: int = setting(
        5_000, "While it fetches from the leader an observer tries its relays this often.", WAIT
    )
    unwritten_chunks_max: int = setting(
        8, "Downloaded chunks that may wait for the disk.", Range(1, 1024)
    )

    snapshot_requests_max: int = setting(
        3, "FetchSnapshot requests under way at once.", Range(1, 64)
    )

    auto_join: bool = setting(
        False,
        "An observer asks to become a voter, and removes an older entry of its id first "
        "(without `tls.node_name`: only at an address in `bootstrap.servers` of the leader).",
        kafka="controller.quorum.auto.join.enable",
    )

    @property
    def fetch_jitter_ms(self) -> int:
        """Bound (exclusive) of each follower's random addition to ``fetch_timeout_ms``, at least 1.

        It keeps a follower's fetch timer below ``check_quorum_ms``: a leader that lost its
        majority is replaced before it resigns.
        """
        return max(1, self.fetch_timeout_ms // 8)

    @property
    def check_quorum_ms(self) -> int:
        """How long a leader continues without Fetches from a majority before it resigns."""
        return self.fetch_timeout_ms * 3 // 2

    def problems(self) -> list[str]:
        """Return one sentence per invalid setting; empty if all are valid."""
        return out_of_range(self) + self._contradictions()

    def _contradictions(self) -> list[str]:
        """Return the settings that are valid alone but not together."""
        found = []
        if self.fetch_max_wait_ms >= self.fetch_timeout_ms:
            found.append(
                f"fetch_max_wait_ms ({self.fetch_max_wait_ms}) must be below fetch_timeout_ms "
                f"({self.fetch_timeout_ms}), or an idle leader looks dead"
            )
        if 5 * self.request_timeout_ms < 6 * self.fetch_max_wait_ms:
            found.append(
                f"request_timeout_ms ({self.request_timeout_ms}) must be at least a fifth above "
                f"fetch_max_wait_ms ({self.fetch_max_wait_ms}), or answers to held fetches "
                "time out under way"
            )
        if self.observer_session_ms <= self.fetch_max_wait_ms:
            found.append(
                f"observer_session_ms ({self.observer_session_ms}) must be above fetch_max_wait_ms "
                f"({self.fetch_max_wait_ms}), or a replica counts as gone while its Fetch is held"
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
