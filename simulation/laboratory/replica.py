"""One replica of a data partition: its log, its role, and what a leader knows of its followers.

Roles come from the controller's image. Followers fetch and truncate by the rules of KIP-101 and
KIP-279. A leader's high watermark is the lowest log end of the in-sync replicas that it knows.
It serves consumers through the production service (``quorate.services.log_reads``).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, cast

from quorate.services.ports import Leadership
from quorum.core.following.fetching import truncation_point
from quorum.core.positions.log_view import LogView
from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.types import LOG_BEGINNING, NO_NODE, Epoch, NodeId, OffsetAndEpoch, SnapshotId
from simulation.laboratory.partition_log import PartitionLog
from statemachine.sections.partitions import PartitionState
from statemachine.sections.producers import ProducersImage


class FetchAnswer(NamedTuple):
    """A leader's answer to a follower: records, or where the histories differ."""

    high_watermark: int
    log_start: OffsetAndEpoch
    records: bytes = b""
    diverging: OffsetAndEpoch | None = None
    producers_at_start: ProducersImage | None = None
    """Set if the follower's log ends below the leader's log start, or there in another epoch."""


class Replica:
    """A replica on one broker. Implements the part of ``ServedNode`` that log reads need."""

    def __init__(self, node_id: NodeId, *, keeps_producers: bool) -> None:
        self.node_id = node_id
        self.log = PartitionLog(keeps_producers=keeps_producers)
        self.leader_id: NodeId = NO_NODE
        self.leader_epoch: Epoch = -1
        self.partition_epoch = -1
        self.isr: tuple[NodeId, ...] = ()
        self.high_watermark = 0
        self.ends: dict[NodeId, int] = {}
        """Log ends that followers have reported to this leader in its epoch."""
        self.broker_epochs: dict[NodeId, int] = {}
        """Registrations under which followers have fetched."""

    # ------------------------------------------------------------------ the role

    def take_role(self, state: PartitionState) -> None:
        """Take the role that a state of the partition gives; an older state changes nothing."""
        if state.partition_epoch <= self.partition_epoch:
            return
        self.partition_epoch, self.isr = state.partition_epoch, state.isr
        if state.leader_epoch > self.leader_epoch:
            self.leader_id, self.leader_epoch = state.leader, state.leader_epoch
            self.ends = {}
        self.advance_high_watermark()

    def lose_role(self) -> None:
        """Forget the role: the broker's process has ended."""
        self.leader_id, self.leader_epoch, self.partition_epoch = NO_NODE, -1, -1
        self.isr, self.ends = (), {}

    def advance_high_watermark(self) -> None:
        """Raise a leader's high watermark to the lowest end of the in-sync replicas."""
        if not self.is_leader:
            return
        others = [self.ends.get(each, -1) for each in self.isr if each != self.node_id]
        lowest = min([self.log.end.offset, *others])
        self.high_watermark = max(self.high_watermark, lowest)

    # ------------------------------------------------------------------ replication

    def fetch(self, follower: NodeId, broker_epoch: int, end: OffsetAndEpoch) -> FetchAnswer:
        """Answer a follower whose log ends at ``end``; an equal prefix counts as replicated."""
        self.broker_epochs[follower] = broker_epoch
        start = self.log_start
        if end.offset < start.offset or (end.offset == start.offset > 0 and end != start):
            producers = self.log.producers_at_start
            return FetchAnswer(self.high_watermark, start, producers_at_start=producers)
        if end.offset > start.offset:
            found = self.log.end_offset_for_epoch(end.epoch) or OffsetAndEpoch(0, 0)
            if found.epoch != end.epoch or found.offset < end.offset:
                return FetchAnswer(self.high_watermark, self.log_start, diverging=found)
        self.ends[follower] = end.offset
        self.advance_high_watermark()
        own_end = self.log.end.offset
        records = self.log.read(end.offset, own_end) if end.offset < own_end else b""
        return FetchAnswer(self.high_watermark, self.log_start, records)

    def take(self, answer: FetchAnswer) -> bool:
        """Take a leader's answer; return whether the log has changed."""
        before = self.log.end
        if answer.producers_at_start is not None:
            self.log = self.log.begun_at(answer.log_start, answer.producers_at_start)
        elif answer.diverging is not None:
            point = truncation_point(cast("LogView", self.log), answer.diverging)
            if point < self.log.start.offset:
                # Nothing of it is in the leader's log: the next fetch begins at the log start.
                self.log = self.log.begun_at(LOG_BEGINNING, ProducersImage())
            else:
                self.log.truncate_to(point)
        elif answer.records:
            self.log.copy(answer.records)
        self.high_watermark = min(answer.high_watermark, self.log.end.offset)
        return self.log.end != before

    # ------------------------------------------------------------------ the service's view

    @property
    def leadership(self) -> Leadership:
        """The leader that this replica knows."""
        return Leadership(self.leader_id, self.leader_epoch)

    @property
    def is_leader(self) -> bool:
        """Whether this replica believes to lead."""
        return self.leader_id == self.node_id

    @property
    def has_role(self) -> bool:
        """Whether it leads or follows, as far as it knows; without a role it does not fetch."""
        return self.leader_epoch >= 0

    @property
    def log_start(self) -> OffsetAndEpoch:
        """First offset kept and the epoch of the record before it."""
        return self.log.start

    @property
    def log_end(self) -> OffsetAndEpoch:
        """Next offset and the epoch of the last record."""
        return self.log.end

    @property
    def log_incarnation(self) -> LogIncarnation:
        """The first one: logs of data are never recovered by an operator here."""
        return FIRST_INCARNATION

    @property
    def leader_epoch_start(self) -> int:
        """Nothing of an older epoch is held back from consumers of data."""
        return -1

    def end_offset_for_epoch(self, epoch: Epoch) -> OffsetAndEpoch | None:
        """Return the largest epoch at or below ``epoch`` and its end (279.1), or None."""
        return self.log.end_offset_for_epoch(epoch)

    def latest_snapshot(self) -> SnapshotId | None:
        """Return None: data partitions have no checkpoints."""
        return None

    async def read_log(self, offset: int, max_bytes: int, end_offset: int) -> bytes:
        """Return whole batches below ``end_offset``."""
        return self.log.read(offset, end_offset, max_bytes)

    async def log_digest(self, offset: int) -> bytes:
        """Return the log digest below ``offset``."""
        return self.log.digest_at(offset)

    def subscribe(self, on_published: Callable[[], None]) -> Callable[[], None]:
        """Nothing is ever published later: calls do not wait here."""
        del on_published
        return lambda: None
