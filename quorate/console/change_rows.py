"""The changes that a batch of the log made to entities, as rows with who, when and why."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from quorate.client.results.metadata import ChangeBatch
from quorate.console.entity_records import SHOWN, record_at
from quorate.timetravel.entities import entity_of
from statemachine import records
from statemachine.derivation import BrokerEvent
from statemachine.image import MetadataImage
from statemachine.payload import type_name
from statemachine.records_schema import MetadataRecord
from statemachine.sections.tracking import RecordKey


class ChangeRow(NamedTuple):
    """One change of one entity; the columns of the table ``change``."""

    start: int
    """Offset of the batch."""
    until: int
    """End of the batch, exclusive: from here on the change is visible."""
    epoch: int
    time: int
    kind: str
    name: str
    type: str
    derived: bool
    principal: str | None
    client_id: str | None
    request_id: str | None
    reason: str | None
    before: str | None
    """Fields as JSON; None if it did not exist."""
    after: str | None
    """Fields as JSON; None if it does not exist any more."""


def own_key(record: MetadataRecord) -> RecordKey | None:
    """Return the key of the entity that a record names by itself; None if it names several."""
    if record.IDENTITY is not None:
        return record.record_key()
    if isinstance(record, records.PartitionChangeRecord):
        return (records.PartitionRecord.API_KEY, record.topic_id, record.partition_id)
    if isinstance(record, BrokerEvent | records.BrokerRegistrationChangeRecord):
        return (records.RegisterBrokerRecord.API_KEY, record.broker_id)
    return None


def changed_keys(
    touched: Iterable[RecordKey], content: Sequence[MetadataRecord]
) -> list[RecordKey]:
    """Return the entities that a batch changed or added, of the kinds that are shown."""
    own = [key for each in content if (key := own_key(each)) is not None]
    return [key for key in dict.fromkeys([*own, *touched]) if key[0] in SHOWN]


def change_rows(
    before: MetadataImage,
    after: MetadataImage,
    batch: ChangeBatch,
    content: Sequence[MetadataRecord],
    keys: Sequence[RecordKey],
) -> list[ChangeRow]:
    """Return one row per entity that differs; records that restate what was there make none."""
    headers = {each.name: each.value.decode("utf-8", "replace") for each in batch.headers}
    types = {key: type_name(each) for each in content if (key := own_key(each)) is not None}
    has_event = any(isinstance(each, BrokerEvent) for each in content)
    fallback = type_name(content[0]) if content else ""
    rows = []
    for key in keys:
        old, new = record_at(before, key), record_at(after, key)
        if old == new:
            continue
        named = entity_of(after, new) if new is not None else entity_of(before, _present(old))
        rows.append(
            ChangeRow(
                batch.base_offset,
                batch.end_offset,
                batch.epoch,
                batch.timestamp_ms,
                named.kind,
                named.name,
                types.get(key, fallback),
                has_event and key not in types,
                headers.get("principal"),
                headers.get("client-id"),
                headers.get("request-id"),
                headers.get("reason"),
                None if old is None else json.dumps(entity_of(before, old).fields()),
                None if new is None else json.dumps(named.fields()),
            )
        )
    return rows


def _present(record: MetadataRecord | None) -> MetadataRecord:
    assert record is not None  # noqa: S101 - one of both is there, for they differ
    return record
