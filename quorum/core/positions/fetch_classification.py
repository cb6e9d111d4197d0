"""Classify a replica's log: is it a prefix of ours, and if not, what does it need. Pure.

See: KIP-595 (diverging epoch), KIP-279 (lineage), KIP-630 (snapshot answer).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from quorum.core.messages.fetch_messages import Diverging
from quorum.core.positions.log_view import LogView
from quorum.types import LOG_BEGINNING, Epoch, SnapshotId


@dataclass(frozen=True, slots=True)
class Serve:
    """The replica's log is a prefix of ours: serve records from its offset on."""


@dataclass(frozen=True, slots=True)
class NeedsSnapshot:
    """Our log cannot bring the replica forward; None if there is no snapshot either."""

    snapshot_id: SnapshotId | None


Classification: TypeAlias = Serve | Diverging | NeedsSnapshot
SERVE = Serve()


def classify_fetch(
    log: LogView, latest: SnapshotId | None, offset: int, last_fetched_epoch: Epoch
) -> Classification:
    """Return how this log can bring forward a replica whose log ends at ``offset``.

    Exactly one answer for any input; ``Serve`` implies that the replica's log is a prefix of
    ours. Pure: reads the log's two ends and its epoch history. ``latest`` is the newest
    snapshot other than the bootstrap one.

    See: docs/architecture.md (A replica that fell behind); 630.8, 279.7.
    """
    if last_fetched_epoch == log.end_epoch and log.epochs.latest_start < offset <= log.end_offset:
        return SERVE
    start = log.start
    if offset == 0 and latest is not None:
        return NeedsSnapshot(latest)
    if start.offset == 0 and offset == 0:
        return SERVE
    if offset < start.offset:
        return NeedsSnapshot(latest)
    if start.offset > 0:
        if offset == start.offset:
            return SERVE if last_fetched_epoch == start.epoch else NeedsSnapshot(latest)
        if last_fetched_epoch < start.epoch:
            return NeedsSnapshot(latest)
    point = log.end_offset_for_epoch(last_fetched_epoch) or LOG_BEGINNING
    if point.epoch != last_fetched_epoch or point.offset < offset:
        return Diverging(point)
    return SERVE
