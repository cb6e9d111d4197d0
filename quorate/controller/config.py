"""The controller's settings: periods, bounds and the policy by which groups are formed."""

from __future__ import annotations

from dataclasses import dataclass

from quorum.errors import ConfigError
from quorum.setting import (
    AGE,
    BYTES,
    COUNT,
    WAIT,
    WAIT_OR_NONE,
    Range,
    derived,
    out_of_range,
    setting,
)
from statemachine.sections.producers import PRODUCER_WINDOW
from statemachine.sessions import DEFAULT_SESSION_TIMEOUT_MS


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """Frozen settings of one controller; equal on all nodes where the comment says so.

    Batch forming: commands that arrive while a group is being written form the next group, so
    groups grow with the load and the disk syncs at its own pace. A group is proposed as soon as
    fewer than ``groups_unflushed_max`` groups are not durable here and fewer than
    ``groups_in_flight_max`` are not committed.
    """

    cluster_id: str
    uses_native_codec: bool = True
    """Equal on all nodes: records in msgpack, fencing as one derived event."""
    kraft_version: int = 0
    """Finalised kraft.version that brokers must support to register."""
    producer_window: int = derived(PRODUCER_WINDOW, Range(1, PRODUCER_WINDOW))
    """Commands one producer may have open, at most ``PRODUCER_WINDOW``. Equal on all nodes."""
    batch_bytes_max: int = derived(8 << 20, BYTES)
    """A command whose batch would be larger is refused. Equal on all nodes."""
    departure_partitions_max: int = derived(2_048, Range(1, 1 << 20))
    """Partitions that a broker leaves in one batch before its fence: about 20 ms of each node."""
    queue_commands_max: int = setting(
        10_000,
        "Commands waiting to be evaluated; further ones are refused.",
        COUNT,
        kafka="queued.max.requests",
    )
    group_commands_max: int = setting(1_024, "Commands written as one group.", COUNT)
    group_bytes_max: int = setting(
        1 << 20, "Bytes at which a group is closed; a single batch may exceed it.", BYTES
    )
    groups_unflushed_max: int = setting(1, "Groups handed to the disk at the same time.", COUNT)
    groups_in_flight_max: int = setting(8, "Groups not yet committed.", COUNT)
    purgatory_max: int = setting(
        100_000, "Reads and waits for an offset held at the same time.", COUNT
    )
    session_timeout_ms: int = setting(
        DEFAULT_SESSION_TIMEOUT_MS, "A broker silent for this long is fenced.",
        AGE, kafka="broker.session.timeout.ms",
    )  # fmt: skip
    idle_interval_ms: int = setting(
        500, "Write a no-op after this much silence; 0: never.",
        WAIT_OR_NONE, kafka="metadata.max.idle.interval.ms",
    )  # fmt: skip
    producer_expiration_ms: int = setting(
        604_800_000, "Forget a producer unused for this long.",
        AGE, kafka="transactional.id.expiration.ms",
    )  # fmt: skip
    position_expiration_ms: int = setting(
        604_800_000, "Forget a consumer position that was not committed again for this long.",
        AGE, kafka="offsets.retention.minutes",
    )  # fmt: skip
    producer_expiry_check_ms: int = setting(
        60_000, "How often such producers and positions are looked for.", WAIT
    )

    def __post_init__(self) -> None:
        problems = out_of_range(self)
        if problems:
            raise ConfigError(problems)
