"""Map scanned batches to rows of ``history``, and to the position columns of every table."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, get_args

from audit.scan import ScannedBatch, Step, Visible
from audit.schema import COMMITTED, UNKNOWN
from audit.segment_file import FoundBatch
from audit.typed_rows import resource_type_name
from quorum.control import DecodedControl
from quorum.types import SnapshotId
from statemachine import records
from statemachine.payload import control_payload, record_payload, text_of_uuid, written_version
from statemachine.records_schema import MetadataRecord
from statemachine.sections.configs import ResourceType

Row: TypeAlias = tuple[Any, ...]
Headers: TypeAlias = Sequence[tuple[str, bytes | None]]

TIMESTAMP_END_MS = 253_402_300_800_000
"""Year 10000: a later timestamp is shown as null."""

_HEADERS = ("principal", "client-id", "request-id", "reason", "traceparent")
_NOBODY: tuple[str | None, ...] = (None,) * len(_HEADERS)

KEY_COLUMNS = (
    "topic", "topic_id", "partition", "broker_id", "resource_type", "resource_name",
    "config_name", "feature", "producer_id", "entity",
)  # fmt: skip
"""The columns of ``history`` that name the entity that a record changes."""

_NAMED_ALIKE = frozenset({"topic_id", "broker_id", "resource_name", "producer_id"})
"""Key columns filled from a field of the same name; ``MetadataRecord.HISTORY`` names others."""

_SOURCES: dict[int, list[tuple[str, str]]] = {
    key: [(spec.name, spec.name) for spec in row.fields if spec.name in _NAMED_ALIKE]
    + ([] if row.record_class.HISTORY is None else [row.record_class.HISTORY])
    for key, row in records.RECORD_TYPES.items()
}
"""By API key: key column and the field that fills it."""
_PLACES = {
    key: [(KEY_COLUMNS.index(column), attribute) for column, attribute in sources]
    for key, sources in _SOURCES.items()
}
"""The same, with the number of the column."""
_TOPIC = KEY_COLUMNS.index("topic")
_RESOURCE_TYPE = KEY_COLUMNS.index("resource_type")

_OF_CONTROL = frozenset(kind.__name__ for kind in get_args(DecodedControl))
"""The types of control records."""
_DERIVED = records.PartitionChangeRecord.__name__
"""The type of all derived changes."""
_OF_PARTITIONS = frozenset({records.PartitionRecord.__name__, _DERIVED})
_DEPENDENT = frozenset(
    {
        row.record_class.__name__
        for key, row in records.RECORD_TYPES.items()
        if any(spec.name == "topic_id" for spec in row.fields)
        and "topic" not in dict(_SOURCES[key])
    }
    | {_DERIVED}
)
"""The types whose rows need the state: they name a topic by its id only, or can be derived."""


def key_values(content: MetadataRecord, topic: str | None) -> list[object]:
    """Return the entity that the record changes, one value per key column."""
    values: list[object] = [None] * len(KEY_COLUMNS)
    values[_TOPIC] = topic
    for place, attribute in _PLACES[content.API_KEY]:
        value = getattr(content, attribute)
        values[place] = text_of_uuid(value) if isinstance(value, bytes) else value
    if isinstance(content, records.ConfigRecord):
        values[_RESOURCE_TYPE] = resource_type_name(content.resource_type)
        if content.resource_type == ResourceType.TOPIC:
            values[_TOPIC] = content.resource_name
    return values


def timestamp(value: int) -> int | None:
    """Return milliseconds since 1970; None for "no time" and for times beyond the year 9999."""
    return value if 0 <= value < TIMESTAMP_END_MS else None


class Position:
    """The position columns of one batch's rows; the headers of its first record name the client."""

    __slots__ = ("_batch", "_commit", "_who")

    def __init__(self, batch: FoundBatch, headers: Headers, committed_offset: int) -> None:
        self._batch = batch.header
        self._commit = COMMITTED if self._batch.end_offset <= committed_offset else UNKNOWN
        self._who = _who(headers)

    def of(self, step: Step, record_type: str, change_index: int, *, is_derived: bool) -> Row:
        """Return the values of ``schema.POSITION`` for a record or a change derived from it."""
        record = step.record
        return self._values(
            record.offset, change_index, record.timestamp, record_type, is_derived=is_derived
        )

    def common(self) -> Row:
        """Return them for all records of the batch, with its first offset, its time and no type."""
        batch = self._batch
        return self._values(batch.base_offset, 0, batch.base_timestamp, None, is_derived=False)

    def _values(
        self,
        offset: int,
        change_index: int,
        time: int,
        record_type: str | None,
        *,
        is_derived: bool,
    ) -> Row:
        batch = self._batch
        return (
            offset,
            change_index,
            batch.epoch,
            batch.base_offset,
            batch.end_offset,
            timestamp(time),
            record_type,
            *self._who,
            is_derived,
            False,
            self._commit,
        )


def _who(headers: Headers) -> tuple[str | None, ...]:
    if not headers:
        return _NOBODY
    found = dict(headers)
    values = map(found.get, _HEADERS)
    return tuple([None if value is None else value.decode(errors="replace") for value in values])


@dataclass(frozen=True, slots=True)
class HistoryWanted:
    """Which rows of ``history`` are wanted: of [start_offset, end_offset), of these types."""

    start_offset: int
    end_offset: int
    types: frozenset[str] = frozenset()
    """Names of record types; empty for all."""
    with_payload: bool = True
    """Whether the column ``payload`` is wanted, which takes the most time; null if not."""

    @property
    def needs_state(self) -> bool:
        """Whether a row depends on earlier records: a topic's name, or a derived change."""
        return not self.types or not self.types.isdisjoint(_DEPENDENT)

    @property
    def needs_partitions(self) -> bool:
        """Whether a row is of a partition, or derived from the state of one."""
        return not self.types or not self.types.isdisjoint(_OF_PARTITIONS)

    @property
    def needs_data(self) -> bool:
        """Whether data records are wanted, and not only those of the quorum itself."""
        return not self.types or not self.types <= _OF_CONTROL


def history_rows(
    scanned: ScannedBatch, committed_offset: int, wanted: HistoryWanted
) -> Iterator[Row]:
    """Yield the batch's rows of ``history``: each record, then the changes derived from it."""
    types, with_payload = wanted.types, wanted.with_payload
    batch = scanned.batch
    position = Position(batch, scanned.headers, committed_offset)
    digest = batch.digest.hex() or None
    for step in scanned.steps:
        if not wanted.start_offset <= step.record.offset < wanted.end_offset:
            continue
        content = step.content
        name = type(content).__name__
        if not types or name in types:
            here = position.of(step, name, 0, is_derived=False)
            if isinstance(content, MetadataRecord):
                version = written_version(step.record.value or b"")
                values = record_values(
                    content, version, step.topic, digest, with_payload=with_payload
                )
            else:
                values = control_values(content, digest)
            yield (*here, *values)
        if types and _DERIVED not in types:
            continue
        for number, (change, topic) in enumerate(zip(step.derived, step.derived_topics), start=1):
            here = position.of(step, _DERIVED, number, is_derived=True)
            version = records.lowest_version(change)
            values = record_values(change, version, topic, digest, with_payload=with_payload)
            yield (*here, *values)


def typed_row(change: Visible, position: Position) -> Row:
    """Return a row of a typed table; ``record_type`` names the record in the log."""
    effect = change.effect
    name = type(change.step.content).__name__
    return (
        *position.of(change.step, name, effect.change_index, is_derived=effect.is_derived),
        change.effective_offset,
        effect.change,
        *effect.values,
    )


def baseline_row(
    snapshot_id: SnapshotId, number: int, record_type: str, append_time: int, *values: object
) -> Row:
    """Return a row for the state below a snapshot's end; ``values`` follow the position."""
    end_offset = max(snapshot_id.offset, 1)
    position = (
        end_offset - 1, number, snapshot_id.epoch, 0, end_offset, timestamp(append_time),
        record_type, *_NOBODY, False, True, COMMITTED,
    )  # fmt: skip
    return (*position, *values)


def record_values(
    content: MetadataRecord, version: int, topic: str | None, digest: str | None,
    *, with_payload: bool = True,
) -> Row:  # fmt: skip
    """Return the columns of ``history`` after the position, for a metadata record."""
    payload = json_text(record_payload(content, version)) if with_payload else None
    return (version, False, *key_values(content, topic), payload, digest)


def control_values(content: DecodedControl, digest: str | None) -> Row:
    """Return the columns of ``history`` after the position, for a control record."""
    return (None, True, *(None,) * len(KEY_COLUMNS), json_text(control_payload(content)), digest)


_encode = json.JSONEncoder(ensure_ascii=False, check_circular=False, separators=(",", ":")).encode


def json_text(document: object) -> str:
    """Return a document as the column ``payload`` has it."""
    return _encode(document)
