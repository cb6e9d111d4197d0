"""The controller's settings: periods, bounds and the policy by which groups are formed."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from quorum.errors import ConfigError
from quorum.ranges import BYTES_MAX, CENTURY_MS, COUNT_MAX, HOUR_MS, Range, out_of_range
from statemachine.sections.producers import PRODUCER_WINDOW
from statemachine.sessions import DEFAULT_SESSION_TIMEOUT_MS

_COUNT = Range(1, COUNT_MAX)
_BYTES = Range(1, BYTES_MAX)
_AGE = Range(1, CENTURY_MS)

RANGES: Final[Mapping[str, Range]] = {
    "producer_window": Range(1, PRODUCER_WINDOW),
    "batch_bytes_max": _BYTES,
    "queue_commands_max": _COUNT,
    "group_commands_max": _COUNT,
    "group_bytes_max": _BYTES,
    "groups_unflushed_max": _COUNT,
    "groups_in_flight_max": _COUNT,
    "purgatory_max": _COUNT,
    "session_timeout_ms": _AGE,
    "idle_interval_ms": Range(0, HOUR_MS),
    "producer_expiration_ms": _AGE,
    "producer_expiry_check_ms": Range(1, HOUR_MS),
}
"""Every number of ``ControllerConfig`` but the version in it."""


@dataclass(frozen=True, slots=True)
class ControllerConfig:
    """Frozen settings of one controller; equal on all nodes where the comment says so.

    Batch forming: what arrives while a group is on its way to the disk waits and becomes the
    next group, so the group grows with the load and the disk syncs at its own pace. A group
    is proposed as soon as fewer than ``groups_unflushed_max`` are not yet durable here and
    fewer than ``groups_in_flight_max`` are not yet committed.
    """

    cluster_id: str
    uses_native_codec: bool = True
    """Equal on all nodes: records in msgpack, fencing as one derived event."""
    kraft_version: int = 0
    """Finalised kraft.version that brokers must support to register."""
    producer_window: int = PRODUCER_WINDOW
    """Commands one producer may have open, at most ``PRODUCER_WINDOW``. Equal on all nodes."""
    batch_bytes_max: int = 8 << 20
    """A command whose batch would be larger is refused. Equal on all nodes."""
    queue_commands_max: int = 10_000
    """Commands waiting for a group; above it RESOURCE_EXHAUSTED is answered at once."""
    group_commands_max: int = 1_024
    group_bytes_max: int = 1 << 20
    """A group is closed when its batches reach this size (a single one may exceed it)."""
    groups_unflushed_max: int = 1
    groups_in_flight_max: int = 8
    purgatory_max: int = 100_000
    """Reads and waits for an offset held at the same time."""
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    """``broker.session.timeout.ms``."""
    idle_interval_ms: int = 500
    """``metadata.max.idle.interval.ms``; 0 writes no NoOpRecord."""
    producer_expiration_ms: int = 604_800_000
    """``transactional.id.expiration.ms``."""
    producer_expiry_check_ms: int = 60_000

    def __post_init__(self) -> None:
        problems = out_of_range(self, RANGES)
        if problems:
            raise ConfigError(problems)
