"""Metadata records as typed messages (``records.proto``), by the table of record types.

The messages are generated from the same declarations (``proto/records.py``), so this module names
no record type and no field.
"""

from __future__ import annotations

import re
from typing import Any, Final

from google.protobuf.message import Message

from quorum.errors import RecordCodecError, UnknownRecordError
from quorum.v1.records_pb2 import TypedRecord
from statemachine.codec import decode_record
from statemachine.records import RECORD_TYPES, MetadataRecord
from statemachine.records_schema import ArrayOf, FieldSpec, StructOf


def _snake(name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower()


_FIELDS: Final = {key: (_snake(each.name), each.fields) for key, each in RECORD_TYPES.items()}
"""By API key: the field of ``TypedRecord``, and those of its message."""


def add_encoded(target: TypedRecord, value: bytes) -> None:
    """Fill a typed record from a record's bytes; what is not known stays undecoded."""
    try:
        record = decode_record(value)
    except (UnknownRecordError, RecordCodecError):
        target.undecoded = value
        return
    add_record(target, record)


def add_record(target: TypedRecord, record: MetadataRecord) -> None:
    """Fill a typed record from a record. Unknown fields of a newer release are left out."""
    name, fields = _FIELDS[record.API_KEY]
    message: Message = getattr(target, name)
    message.SetInParent()
    _fill(message, fields, record)


def _fill(message: Message, fields: tuple[FieldSpec, ...], value: object) -> None:
    for spec in fields:
        content = getattr(value, spec.name)
        if content is None:
            continue
        if isinstance(spec.kind, ArrayOf):
            target = getattr(message, spec.name)
            if spec.nullable:
                target.SetInParent()
                target = target.values
            _extend(target, spec.kind, content)
        elif isinstance(spec.kind, StructOf):
            inner = getattr(message, spec.name)
            inner.SetInParent()
            _fill(inner, spec.kind.fields, content)
        else:
            setattr(message, spec.name, content)


def _extend(target: Any, kind: ArrayOf, content: tuple[Any, ...]) -> None:
    if isinstance(kind.element, StructOf):
        for each in content:
            _fill(target.add(), kind.element.fields, each)
    else:
        target.extend(content)
