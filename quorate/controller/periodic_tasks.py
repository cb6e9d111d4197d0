"""Periodic work of an active controller: fence brokers, expire producers, write NoOpRecords.

Each periodic task yields records like a command's, evaluated on the same uncommitted image. Which
are due follows from times given as arguments. See statemachine/DESIGN.md.
"""

from __future__ import annotations

from collections.abc import Iterator

from quorate.controller.config import ControllerConfig
from quorate.controller.departures import Departure, Departures
from statemachine.delta import ImageDelta
from statemachine.image import MetadataImage
from statemachine.prepare.lifecycle import fence_records
from statemachine.records import (
    AbortTransactionRecord,
    ExpireProducerRecord,
    MetadataRecord,
    NoOpRecord,
    RemoveCommittedPositionRecord,
    RemoveTransactionalIdRecord,
)
from statemachine.sessions import BrokerGeneration, BrokerSessions

EXPIRED_PER_BATCH_MAX = 1_000
"""Producers, or positions, forgotten in one batch; the rest follows with the next group."""


class PeriodicTasks:
    """Periodic work of one leadership term. Owned by the controller and its thread."""

    def __init__(
        self, config: ControllerConfig, sessions: BrokerSessions, departures: Departures
    ) -> None:
        self._config = config
        self._sessions = sessions
        self._departures = departures
        self._last_write_ms = 0
        self._next_expiry_check_ms = 0

    def begin(self, image: MetadataImage, now_ms: int) -> None:
        """Start a leadership term: every unfenced broker gets a new session.

        A broker whose registration was imported gets one with its first heartbeat.
        """
        brokers, source = image.brokers, image.source
        self._sessions.reset(
            (
                BrokerGeneration(broker_id, brokers[broker_id].epoch)
                for broker_id in sorted(brokers)
                if not brokers[broker_id].fenced
                and (source is None or not source.has_brought(brokers[broker_id].epoch))
            ),
            now_ms,
            leadership_term_offset=image.provenance.end_offset - 1,
        )
        self._last_write_ms = now_ms
        self._next_expiry_check_ms = now_ms + self._config.producer_expiry_check_ms

    def wrote(self, now_ms: int) -> None:
        """Record an append: the log is not idle."""
        self._last_write_ms = now_ms

    def next_deadline_ms(self) -> int:
        """Return when the next periodic task is due, in milliseconds, if no event comes before."""
        # Asked once per turn of the replica: compared one by one, without a list.
        deadline = self._next_expiry_check_ms
        interval = self._config.idle_interval_ms
        if interval and (idle := self._last_write_ms + interval) < deadline:
            deadline = idle
        expiry = self._sessions.next_expiry_ms()
        if expiry is not None and expiry < deadline:
            deadline = expiry
        return deadline

    def due(
        self, delta: ImageDelta, now_ms: int, wall_ms: int, departed: Departure | None = None
    ) -> Iterator[list[MetadataRecord]]:
        """The atomic batches to write now; each is evaluated when it is asked for.

        ``departed``: a broker that has just left its partitions, so it need not do so again.
        """
        fenced = self._fence_stalest(delta, now_ms, departed)
        if fenced:
            yield fenced
        if now_ms >= self._next_expiry_check_ms:
            self._next_expiry_check_ms = now_ms + self._config.producer_expiry_check_ms
            expired = expired_producers(delta, wall_ms - self._config.producer_expiration_ms)
            if expired:
                if len(expired) == EXPIRED_PER_BATCH_MAX:
                    self._next_expiry_check_ms = now_ms
                yield expired
            expired = expired_positions(delta, wall_ms - self._config.position_expiration_ms)
            if expired:
                if len(expired) == EXPIRED_PER_BATCH_MAX:
                    self._next_expiry_check_ms = now_ms
                yield expired

    def idle_records(self, now_ms: int) -> list[MetadataRecord]:
        """Yield a NoOpRecord if nothing was written for the idle interval."""
        interval = self._config.idle_interval_ms
        if interval and now_ms - self._last_write_ms >= interval:
            return [NoOpRecord()]
        return []

    def _fence_stalest(
        self, delta: ImageDelta, now_ms: int, departed: Departure | None
    ) -> list[MetadataRecord]:
        """Fence one broker whose session has expired; drop entries of its earlier incarnations.

        One with many partitions leaves them first. It keeps its session until then, so it is not
        fenced if it is in contact again.
        """
        while (stale := self._sessions.stalest(now_ms)) is not None:
            broker = delta.cluster.broker(stale.broker_id)
            is_fenced = broker is None or broker.epoch != stale.broker_epoch or broker.fenced
            records: list[MetadataRecord] = []
            if broker is not None and not is_fenced:
                records = fence_records(
                    delta, broker, uses_native_codec=self._config.uses_native_codec
                )
                has_departed = departed is not None and departed.generation == stale
                if not has_departed and self._departures.begin(delta, records) is not None:
                    return []
            self._sessions.end(stale.broker_id, stale.broker_epoch)
            if records:
                return records
        return []


def expired_producers(delta: ImageDelta, oldest_kept_ms: int) -> list[MetadataRecord]:
    """Records that expire writers without a write since ``oldest_kept_ms`` (360.5).

    A transactional id goes when its producer is unknown or goes as well. At most
    ``EXPIRED_PER_BATCH_MAX`` records, the lowest ids first.
    """
    producers = delta.producers
    gone = [
        producer_id
        for producer_id in sorted(producers.states)
        if producers.states[producer_id].last_timestamp_ms < oldest_kept_ms
    ][:EXPIRED_PER_BATCH_MAX]
    forgotten = set(gone)
    records: list[MetadataRecord] = [ExpireProducerRecord(producer_id) for producer_id in gone]
    for name in sorted(producers.transactional_ids):
        if len(records) == EXPIRED_PER_BATCH_MAX:
            break
        known = producers.transactional_ids[name]
        is_unused = known.producer_id in forgotten or known.producer_id not in producers.states
        if is_unused and known.last_update_ms < oldest_kept_ms:
            records.append(RemoveTransactionalIdRecord(name))
    return records


def expired_positions(delta: ImageDelta, oldest_kept_ms: int) -> list[MetadataRecord]:
    """Records that forget positions that were not committed since ``oldest_kept_ms`` (320.6).

    At most ``EXPIRED_PER_BATCH_MAX``, in the order of their groups.
    """
    positions = delta.positions.by_group
    gone = [
        group
        for group in sorted(positions)
        if positions[group].commit_timestamp_ms < oldest_kept_ms
    ][:EXPIRED_PER_BATCH_MAX]
    return [RemoveCommittedPositionRecord(group) for group in gone]


def activation_batches(
    image: MetadataImage,
    bootstrap: tuple[MetadataRecord, ...],
    *,
    has_open_transaction: bool,
) -> list[list[MetadataRecord]]:
    """What a new leader writes before anything else.

    A transaction that a former leader left open is aborted; a log that holds no data yet gets
    the bootstrap checkpoint's records, as one atomic batch so that it gets all of them once.
    """
    batches: list[list[MetadataRecord]] = []
    if has_open_transaction:
        batches.append([AbortTransactionRecord("left open by a former leader")])
    is_empty = image.source is None and image.has_content_of(MetadataImage())
    if is_empty and bootstrap:
        batches.append(list(bootstrap))
    return batches
