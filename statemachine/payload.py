"""Convert records to JSON: metadata records by their schema, control records by their fields.

Names and shapes follow Kafka's tools (``{"type": "TOPIC_RECORD", "version": 0, "data": {...}}``
with camel-case fields), so that dumps of both can be compared line by line.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from functools import lru_cache

import msgpack

from quorum.control import DecodedControl
from quorum.control_incarnation import INCARNATION_REPORT_TAG
from quorum.control_records import LeaderChange
from quorum.types import uuid_to_text
from quorum.varint import read_uvarint
from statemachine.codec_kafka import FRAME_VERSION, carried_record
from statemachine.records import RECORD_TYPES, ConfigRecord
from statemachine.records_schema import (
    ArrayOf,
    FieldSpec,
    Kind,
    MetadataRecord,
    Scalar,
    WireStruct,
    field_specs,
)
from statemachine.redaction import REDACTED, SECRET_FIELDS, is_secret_config, shown_config

_UNKNOWN = "(unknown)"
"""Name of what a record holds besides the fields that this release knows."""
_WORD_START = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_NAMES_MAX = 1024
"""Most names and schemas remembered: more than all record types have, without what is unknown."""
_UUIDS_MAX = 1 << 14
"""Most uuids whose text is remembered: neighbouring records name the same topics."""

_AS_THEY_ARE = frozenset({int, str, bool, float, type(None)})

text_of_uuid = lru_cache(_UUIDS_MAX)(uuid_to_text)
"""``uuid_to_text``, for callers that show the same uuids again and again."""


def type_name(record: MetadataRecord) -> str:
    """Return a record's type as Kafka's tools write it: ``TOPIC_RECORD``."""
    return _type_name(record.API_KEY)


@lru_cache(_NAMES_MAX)
def _type_name(api_key: int) -> str:
    return _WORD_START.sub("_", RECORD_TYPES[api_key].name).upper()


@lru_cache(_NAMES_MAX)
def _fields_at(api_key: int, version: int) -> tuple[FieldSpec, ...]:
    return RECORD_TYPES[api_key].fields_at(version)


_specs: dict[type[WireStruct], tuple[FieldSpec, ...]] = {}


def _specs_of(owner: type[WireStruct]) -> tuple[FieldSpec, ...]:
    known = _specs.get(owner)
    if known is None:
        known = _specs[owner] = field_specs(owner)
    return known


def written_version(value: bytes) -> int:
    """Return the schema version in which either codec wrote a well-formed value."""
    if value[0] == FRAME_VERSION:
        carried = carried_record(value)
        if carried is not None:
            return written_version(carried)
        _, position = read_uvarint(value, 1, len(value))
        return read_uvarint(value, position, len(value))[0]
    unpacker = msgpack.Unpacker()
    unpacker.feed(value)
    unpacker.read_array_header()
    unpacker.skip()
    return int(unpacker.unpack())


def record_payload(
    record: MetadataRecord, version: int, *, show_secrets: bool = False
) -> dict[str, object]:
    """Return a metadata record as a JSON document."""
    specs = _fields_at(record.API_KEY, version)
    data = _struct(record, specs, show_secrets=show_secrets)
    if isinstance(record, ConfigRecord) and not show_secrets:
        data["value"] = shown_config(record.name, record.value)
        if _UNKNOWN in data and is_secret_config(record.name):
            data[_UNKNOWN] = REDACTED
    return {"type": type_name(record), "version": version, "data": data}


def control_payload(control: DecodedControl) -> dict[str, object]:
    """Return a control record as a JSON document; its type is the name of its class.

    Its origin is left out: it has the place of record headers (``quorum.control_origin``).
    """
    data = _plain(control)
    if isinstance(data, dict):
        data.pop("origin", None)
    document: dict[str, object] = {"type": type(control).__name__, "data": data}
    if isinstance(control, LeaderChange):
        report = dict(control.tagged).get(INCARNATION_REPORT_TAG)
        if report is not None:
            document["incarnationReport"] = _report(report)
    return document


def _report(data: bytes) -> object:
    """Return the report of a recovery or a restore (ADR 65)."""
    try:
        return json.loads(data)
    except ValueError:
        return bytes_text(data)


def bytes_text(value: bytes) -> str:
    """Return bytes as base64url text; 16 of them look like every uuid."""
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode("ascii")


def _struct(
    owner: MetadataRecord | WireStruct, specs: tuple[FieldSpec, ...], *, show_secrets: bool
) -> dict[str, object]:
    data: dict[str, object] = {}
    for spec in specs:
        value = getattr(owner, spec.name)
        if spec.tag is not None and value == spec.default:
            continue
        name = _camel(spec.name)
        if spec.name in SECRET_FIELDS and not show_secrets:
            data[name] = REDACTED
        elif type(value) in _AS_THEY_ARE:
            data[name] = value
        else:
            data[name] = _value(value, spec.kind, show_secrets=show_secrets)
    if owner.extra is not None:
        is_hidden = not show_secrets and not SECRET_FIELDS.isdisjoint(each.name for each in specs)
        data[_UNKNOWN] = REDACTED if is_hidden else _plain(owner.extra)
    return data


def _value(value: object, kind: Kind, *, show_secrets: bool) -> object:
    if type(value) in _AS_THEY_ARE:
        return value
    if isinstance(kind, ArrayOf) and isinstance(value, tuple):
        if all(type(item) in _AS_THEY_ARE for item in value):
            return list(value)
        return [_value(item, kind.element, show_secrets=show_secrets) for item in value]
    if isinstance(value, WireStruct):
        return _struct(value, _specs_of(type(value)), show_secrets=show_secrets)
    if isinstance(value, bytes):
        is_uuid = isinstance(kind, Scalar) and kind.name == "uuid"
        return text_of_uuid(value) if is_uuid else bytes_text(value)
    return value


def _plain(value: object) -> object:
    """Return a value without a schema as JSON."""
    if isinstance(value, bytes):
        return bytes_text(value)
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if is_dataclass(value) and not isinstance(value, type):
        return {_camel(item.name): _plain(getattr(value, item.name)) for item in fields(value)}
    return value


@lru_cache(_NAMES_MAX)
def _camel(name: str) -> str:
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)
