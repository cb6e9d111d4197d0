"""Which records changed an entity between two offsets, who wrote them, and why.

The replay and the derived changes are those of the audit trail (``audit.scan``); this module maps
each change to the key of the checkpoint record that it concerns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from audit.history_rows import Position
from audit.plan import ReadPlan
from audit.replay import scan_range
from audit.scan import ScannedBatch, Step, Visible
from audit.schema import POSITION
from audit.typed_tables import WITHOUT_EFFECT
from quorate.timetravel.moments import time_text
from quorum.types import uuid_from_text
from statemachine import records
from statemachine.import_state import IMPORT_KEY
from statemachine.imports import HEADER_SOURCE_OFFSET
from statemachine.records_schema import MetadataRecord
from statemachine.sections.configs import ResourceType
from statemachine.sections.tracking import RecordKey

Author = dict[str, object]
"""One change: ``offset``, ``epoch``, ``time``, ``record_type``, ``principal``, ``client_id``,
``request_id``, ``reason``, ``is_derived``. Text that the log does not record is None."""

_SHOWN = ("offset", "epoch", "record_type", "principal", "client_id", "request_id", "reason")
_NAMES = tuple(column.name for column in POSITION)
_BROKER_EPOCH: RecordKey = (records.BrokerEpochRecord.API_KEY,)
_PRODUCER = records.ProducerStateRecord.API_KEY


def authors(plan: ReadPlan, start_offset: int, end_offset: int) -> dict[RecordKey, list[Author]]:
    """Return every change in [start_offset, end_offset) by the entity's key, oldest first.

    Changes of aborted metadata transactions are left out. ``start_offset`` must be one whose state
    the source can show.

    Raises:
        LogDamagedError, CorruptBatchError, SnapshotCorruptError, StorageError: As
            ``audit.replay.scan_range``.
    """
    found: dict[RecordKey, list[Author]] = {}
    untyped = _Untyped()
    for item in scan_range(plan, start_offset, end_offset):
        if not isinstance(item, ScannedBatch):
            continue
        untyped.take(item)
        if not item.is_settled:
            continue
        position, batch = None, None
        for change in item.visible:
            if position is None or change.batch is not batch:
                batch = change.batch
                position = Position(batch, change.headers, plan.committed_offset)
            effect = change.effect
            author = _author(position, change.step, is_derived=effect.is_derived)
            found.setdefault(_key_of(change), []).append(author)
        for key, author in untyped.settled(plan.committed_offset):
            found.setdefault(key, []).append(author)
    return found


def _author(position: Position, step: Step, *, is_derived: bool) -> Author:
    row = dict(zip(_NAMES, position.of(step, type(step.content).__name__, 0, is_derived=False)))
    shown = {name: row[name] for name in _SHOWN}
    time_ms = row["append_time"]
    return {
        **shown,
        "time": None if time_ms is None else time_text(time_ms),
        "is_derived": is_derived,
    }


def _key_of(change: Visible) -> RecordKey:
    """Return the checkpoint record that a row of a typed table is about."""
    content, values = change.step.content, change.effect.values
    match change.effect.table:
        case "topics":
            return (records.TopicRecord.API_KEY, uuid_from_text(values[0]))
        case "partitions":
            return (records.PartitionRecord.API_KEY, uuid_from_text(values[0]), values[1])
        case "configs":
            return (records.ConfigRecord.API_KEY, _resource_type(values[0]), values[1], values[2])
        case "brokers":
            return (records.RegisterBrokerRecord.API_KEY, values[0])
        case "controllers":
            return (records.RegisterControllerRecord.API_KEY, values[0])
        case "features":
            return (records.FeatureLevelRecord.API_KEY, values[0])
        case "producer_ids":
            return _producer_key(values)
        case "acls":
            return (records.AccessControlEntryRecord.API_KEY, uuid_from_text(values[0]))
        case _:
            assert isinstance(content, records.ClientQuotaRecord)  # noqa: S101 - the last table
            return content.record_key()


def _resource_type(name: str) -> int:
    try:
        return int(ResourceType[name.upper()])
    except KeyError:
        return int(name)


def _producer_key(values: tuple[Any, ...]) -> RecordKey:
    if values[0] == "block":
        return (records.ProducerIdsRecord.API_KEY,)
    return (_PRODUCER, values[1])


_KEYS: dict[type[MetadataRecord], Callable[[Any], RecordKey]] = {
    records.RemoveUserScramCredentialRecord: lambda each: (
        records.UserScramCredentialRecord.API_KEY,
        each.name,
        each.mechanism,
    ),
    records.RemoveDelegationTokenRecord: lambda each: (
        records.DelegationTokenRecord.API_KEY,
        each.token_id,
    ),
    records.RemoveTransactionalIdRecord: lambda each: (
        records.TransactionalIdRecord.API_KEY,
        each.transactional_id,
    ),
    records.RemoveCommittedPositionRecord: lambda each: (
        records.CommittedPositionRecord.API_KEY,
        each.group,
    ),
    records.BeginImportRecord: lambda _each: IMPORT_KEY,
    records.RegisterBrokerRecord: lambda _each: _BROKER_EPOCH,
}
"""Records that change an entity without a typed table, and are no state of it themselves."""


def _untyped_key(record: MetadataRecord) -> RecordKey | None:
    """Return the entity without a typed table that a record changes; None if it changes none."""
    kind = type(record)
    if kind in _KEYS:
        return _KEYS[kind](record)
    return record.record_key() if kind in WITHOUT_EFFECT and kind.IDENTITY is not None else None


class _Untyped:
    """Changes that the typed tables do not show; those of an open transaction are held back."""

    def __init__(self) -> None:
        self._held: list[tuple[RecordKey, Step, ScannedBatch]] = []
        self._mark = 0

    def take(self, batch: ScannedBatch) -> None:
        for step in batch.steps:
            content = step.content
            if isinstance(content, records.BeginTransactionRecord):
                self._mark = len(self._held)
            elif isinstance(content, records.AbortTransactionRecord):
                del self._held[self._mark :]
            elif isinstance(content, MetadataRecord) and (key := _untyped_key(content)) is not None:
                self._held.append((key, step, batch))
                if isinstance(content, records.BeginImportRecord):
                    self._held.append(((records.ZkMigrationStateRecord.API_KEY,), step, batch))
        header = batch.batch.header
        if batch.steps and not header.is_control:
            if header.producer_id >= 0:
                self._held.append(((_PRODUCER, header.producer_id), batch.steps[0], batch))
            if any(name == HEADER_SOURCE_OFFSET for name, _ in batch.headers):
                self._held.append((IMPORT_KEY, batch.steps[0], batch))

    def settled(self, committed_offset: int) -> Iterator[tuple[RecordKey, Author]]:
        held, self._held, self._mark = self._held, [], 0
        for key, step, batch in held:
            position = Position(batch.batch, batch.headers, committed_offset)
            yield key, _author(position, step, is_derived=False)
