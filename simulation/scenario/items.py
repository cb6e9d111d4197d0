"""The records that scripts write: named items with a text value, one metadata record each.

They are configuration entries of a kind whose names and values are free.
"""

from __future__ import annotations

from quorum.batch import BatchHeader, Record, encode_batch, iterate_records
from quorum.control import decode_control
from statemachine.codec import decode_record, encode_record
from statemachine.commands import ConfigChange, IncrementalAlterConfigs, ResourceType
from statemachine.image import MetadataImage
from statemachine.records import ConfigRecord, InitProducerRecord

_KIND = int(ResourceType.CLIENT_METRICS)
_KEY = "match"


def set_item(name: str, value: str) -> IncrementalAlterConfigs:
    """Return the command that stores one item."""
    return IncrementalAlterConfigs(_KIND, name, (ConfigChange(_KEY, 0, value),))


def item_batch(name: str, *, offset: int, epoch: int) -> bytes:
    """Return a batch of one item, as a leader of ``epoch`` writes it."""
    value = encode_record(ConfigRecord(_KIND, name, _KEY, name))
    return encode_batch([value], base_offset=offset, epoch=epoch, timestamp=1000 + offset)


def producer_batch(producer_id: int, producer_epoch: int, *, offset: int, epoch: int) -> bytes:
    """Return a batch of a leader of ``epoch`` that allocates a producer id and epoch."""
    value = encode_record(InitProducerRecord(producer_id, producer_epoch))
    return encode_batch([value], base_offset=offset, epoch=epoch, timestamp=1000 + offset)


def items_of(image: MetadataImage) -> list[str]:
    """Return the items of an image as text, by name."""
    found = []
    for kind, name in sorted(image.configs.resources):
        if kind == _KIND:
            found.append(item_text(name, image.configs.value(kind, name, _KEY) or ""))
    return found


def item_text(name: str, value: str) -> str:
    """Return ``name``, or ``name=value`` where they differ."""
    return name if name == value else f"{name}={value}"


def record_texts(data: bytes, header: BatchHeader) -> list[str]:
    """Return each record of a batch as text."""
    text_of = _control_text if header.is_control else _data_text
    return [text_of(record) for record in iterate_records(data, header)]


def _control_text(record: Record) -> str:
    return type(decode_control(record)).__name__


def _data_text(record: Record) -> str:
    decoded = decode_record(record.value or b"")
    if isinstance(decoded, ConfigRecord) and decoded.resource_type == _KIND:
        return item_text(decoded.resource_name, decoded.value or "")
    return type(decoded).__name__
