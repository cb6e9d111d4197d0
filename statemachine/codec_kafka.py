"""Kafka's own framing of metadata records: flexible encoding with tagged fields.

``uvarint frame version (1) | uvarint api key | uvarint record version | fields | tagged fields``

The table of record types drives it, so that every tool of ours reads a real Kafka metadata log
or checkpoint. Unknown tagged fields are kept as ``extra`` and written back.

Kafka's readers refuse foreign record types and record headers, and ignore unknown tagged fields.
So one of our own records is the tagged field ``TAG_RECORD`` of a NoOpRecord. A batch's record
headers are the tagged field ``TAG_HEADERS`` of its first record. Neither reaches an image as
``extra``.

See: docs/reference/formats.md; ADR 41; KIP-482, KIP-631.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any, TypeAlias

import msgpack

from quorum.errors import RecordCodecError, UnknownRecordError
from quorum.types import TaggedFields
from quorum.varint import (
    encode_compact_string,
    encode_tagged_fields,
    encode_uvarint,
    read_bytes,
    read_compact_string,
    read_tagged_fields,
    read_uvarint,
)
from statemachine.codec_native import decode_native, encode_native, pack_trailing
from statemachine.records import (
    OWN_API_KEY_MIN,
    RECORD_TYPES,
    BrokerFencedEvent,
    BrokerLeavingEvent,
    BrokerShutdownEvent,
    BrokerUnfencedEvent,
    MetadataRecord,
    NoOpRecord,
)
from statemachine.records_schema import (
    INTEGER_RANGES,
    ArrayOf,
    Extra,
    FieldSpec,
    Kind,
    Scalar,
    StructOf,
    WireStruct,
)

FRAME_VERSION = 1
INT16_MAX = (1 << 15) - 1
STRING_BYTES_MAX = INT16_MAX
"""Kafka refuses longer strings in metadata records."""

TAG_TRAILING = OWN_API_KEY_MIN
"""Tag with the values after a native record's last known field, as msgpack."""

TAG_RECORD = OWN_API_KEY_MIN + 1
"""Tag of a NoOpRecord that contains one of our own records, in the native codec."""

TAG_HEADERS = OWN_API_KEY_MIN + 2
"""Tag of a batch's first record with its record headers: msgpack ``[[name, value], …]``."""

_DERIVING_TYPES = frozenset(
    {BrokerFencedEvent, BrokerUnfencedEvent, BrokerShutdownEvent, BrokerLeavingEvent}
)
_CARRIED_TAGS = frozenset({TAG_RECORD, TAG_HEADERS})

RecordHeaders: TypeAlias = Sequence[tuple[str, bytes | None]]

_FIXED = {
    "int8": struct.Struct(">b"),
    "int16": struct.Struct(">h"),
    "int32": struct.Struct(">i"),
    "int64": struct.Struct(">q"),
    "uint16": struct.Struct(">H"),
    "float64": struct.Struct(">d"),
}
_PYTHON_TYPES: dict[str, type] = dict.fromkeys(INTEGER_RANGES, int) | {
    "string": str,
    "bytes": bytes,
    "uuid": bytes,
    "bool": bool,
    "float64": float,
}
_MALFORMED = (ValueError, TypeError, OverflowError, struct.error)


def encode_kafka_frame(record: MetadataRecord, version: int, headers: RecordHeaders = ()) -> bytes:
    """Encode a record in Kafka's framing; ``headers`` are those of the batch that it begins.

    Raises:
        UnknownRecordError: This type has no such version.
        RecordCodecError: A field does not fit, or the record is a broker event.
    """
    carried: list[tuple[int, bytes]] = []
    if record.API_KEY >= OWN_API_KEY_MIN:
        if type(record) in _DERIVING_TYPES:
            raise RecordCodecError(
                f"{type(record).__name__} implies changes that Kafka's readers could not see: only "
                "the native codec can write it"
            )
        carried.append((TAG_RECORD, encode_native(record, version)))
        record, version = NoOpRecord(), 0
    if headers:
        carried.append((TAG_HEADERS, msgpack.packb(headers)))
    record_type = RECORD_TYPES[record.API_KEY]
    if version not in record_type.versions:
        raise UnknownRecordError(
            f"unknown version {version} of {record_type.name}",
            api_key=record.API_KEY,
            version=version,
        )
    try:
        head = (
            encode_uvarint(FRAME_VERSION) + encode_uvarint(record.API_KEY) + encode_uvarint(version)
        )
        return head + _encode_fields(record, record_type.fields, version, carried)
    except _MALFORMED as error:
        raise RecordCodecError(f"{record_type.name}: {error}") from error


def decode_kafka_frame(value: bytes) -> MetadataRecord:
    """Decode a record in Kafka's framing, or our own record that it contains.

    Raises:
        UnknownRecordError: A type or version this release does not know.
        RecordCodecError: Anything else that is not one well-formed record.
    """
    record, carried = _decode_frame(value)
    own = carried.get(TAG_RECORD)
    return record if own is None else _own_record(record, own)


def carried_headers(value: bytes) -> RecordHeaders:
    """Return the record headers that a batch's first record contains; empty for none.

    ``value`` is in Kafka's framing.

    Raises:
        UnknownRecordError: A type or version this release does not know.
        RecordCodecError: Anything else that is not one well-formed record.
    """
    packed = _decode_frame(value)[1].get(TAG_HEADERS)
    return () if packed is None else _unpack_headers(packed)


def carried_record(value: bytes) -> bytes | None:
    """Return the native bytes of our own record that a value in Kafka's framing contains, if any.

    Raises:
        UnknownRecordError, RecordCodecError: As ``decode_kafka_frame``.
    """
    return _decode_frame(value)[1].get(TAG_RECORD)


def _own_record(carrier: MetadataRecord, value: bytes) -> MetadataRecord:
    record = decode_native(value)
    if record.API_KEY < OWN_API_KEY_MIN or type(carrier) is not NoOpRecord or carrier.extra:
        raise RecordCodecError(
            f"a {type(carrier).__name__} that carries a {type(record).__name__} and other fields"
        )
    return record


def _unpack_headers(packed: bytes) -> RecordHeaders:
    try:
        found = msgpack.unpackb(packed, use_list=False)
    except _MALFORMED as error:
        raise RecordCodecError(f"record headers in a tagged field: {error!r}") from error
    if type(found) is not tuple or not all(map(_is_header, found)):
        raise RecordCodecError("record headers in a tagged field are no list of pairs")
    return found


def _is_header(pair: Any) -> bool:
    return (
        type(pair) is tuple
        and len(pair) == 2
        and type(pair[0]) is str
        and (pair[1] is None or type(pair[1]) is bytes)
    )


def _decode_frame(value: bytes) -> tuple[MetadataRecord, dict[int, bytes]]:
    """Return a record of Kafka's type, and our own tagged fields by tag."""
    try:
        end = len(value)
        frame, position = read_uvarint(value, 0, end)
        api_key, position = read_uvarint(value, position, end)
        version, position = read_uvarint(value, position, end)
        if frame != FRAME_VERSION:
            raise ValueError(f"frame version {frame}")
        if api_key > INT16_MAX or version > INT16_MAX:
            raise ValueError(f"api key {api_key} version {version}")
    except _MALFORMED as error:
        raise RecordCodecError(f"not a framed metadata record: {error}") from error
    record_type = RECORD_TYPES.get(api_key) if api_key < OWN_API_KEY_MIN else None
    if record_type is None or version not in record_type.versions:
        what = "type" if record_type is None else f"version of {record_type.name},"
        raise UnknownRecordError(
            f"unknown record {what} api key {api_key} version {version}",
            api_key=api_key,
            version=version,
        )
    carried: dict[int, bytes] = {}
    try:
        specs = record_type.fields_at(version)
        values, position = _decode_fields(value, position, end, specs, carried)
        if position != end:
            raise ValueError(f"{end - position} bytes behind the record")
        return record_type.record_class(**values), carried
    except _MALFORMED as error:
        raise RecordCodecError(f"{record_type.name} version {version}: {error}") from error


def _encode_fields(
    owner: MetadataRecord | WireStruct,
    specs: tuple[FieldSpec, ...],
    version: int,
    carried: Sequence[tuple[int, bytes]] = (),
) -> bytes:
    parts = []
    tagged = list(carried)
    for spec in specs:
        value = getattr(owner, spec.name)
        if spec.since > version:
            if value != spec.default:
                raise ValueError(f"{spec.name} needs version {spec.since}, not {version}")
        elif spec.tag is None:
            parts.append(_encode_field(spec, value))
        elif value != spec.default:
            tagged.append((spec.tag, _encode_field(spec, value)))
    if owner.extra is not None:
        tagged.extend(owner.extra.tags)
        if owner.extra.trailing:
            tagged.append((TAG_TRAILING, pack_trailing(owner.extra.trailing)))
    parts.append(encode_tagged_fields(tuple(sorted(tagged))))
    return b"".join(parts)


def _encode_field(spec: FieldSpec, value: Any) -> bytes:
    if value is None:
        if not spec.nullable:
            raise ValueError(f"{spec.name} is null")
        return b"\x00"
    return _encode_value(spec.kind, value, spec.name)


def _encode_value(kind: Kind, value: Any, name: str) -> bytes:
    if isinstance(kind, ArrayOf):
        parts = [encode_uvarint(len(value) + 1)]
        parts += [_encode_value(kind.element, item, name) for item in value]
        return b"".join(parts)
    if isinstance(kind, StructOf):
        return _encode_fields(value, kind.fields, 0)
    _check_type(kind, value, name)
    if kind.name == "string":
        encoded = encode_compact_string(value)
        if len(encoded) > STRING_BYTES_MAX + 3:
            raise ValueError(f"{name} is longer than {STRING_BYTES_MAX} bytes")
        return encoded
    if kind.name == "bytes":
        return encode_uvarint(len(value) + 1) + bytes(value)
    if kind.name == "uuid":
        if len(value) != 16:
            raise ValueError(f"{name} is not a uuid of 16 bytes")
        return bytes(value)
    if kind.name == "bool":
        return b"\x01" if value else b"\x00"
    return _FIXED[kind.name].pack(value)


def _check_type(kind: Scalar, value: object, name: str) -> None:
    if type(value) is not _PYTHON_TYPES[kind.name]:
        raise ValueError(f"{name} is no {kind.name}: {value!r:.80}")


def _decode_fields(
    data: bytes,
    position: int,
    end: int,
    specs: tuple[FieldSpec, ...],
    carried: dict[int, bytes] | None = None,
) -> tuple[dict[str, Any], int]:
    """Return field values by name, ``extra`` included, and the position behind them.

    Our own tagged fields go into ``carried``, if given.
    """
    values: dict[str, Any] = {}
    tagged: dict[int, FieldSpec] = {}
    for spec in specs:
        if spec.tag is None:
            values[spec.name], position = _decode_field(data, position, end, spec)
        else:
            tagged[spec.tag] = spec
    section, position = read_tagged_fields(data, position, end)
    unknown: list[tuple[int, bytes]] = []
    for tag, payload in section:
        known = tagged.get(tag)
        if known is None:
            if carried is not None and tag in _CARRIED_TAGS:
                carried[tag] = payload
            else:
                unknown.append((tag, payload))
            continue
        values[known.name], after = _decode_field(payload, 0, len(payload), known)
        if after != len(payload):
            raise ValueError(f"{len(payload) - after} bytes behind tagged field {known.name}")
    if unknown:
        values["extra"] = _to_extra(tuple(unknown))
    return values, position


def _to_extra(unknown: TaggedFields) -> Extra:
    trailing: tuple[Any, ...] = ()
    if unknown[-1][0] == TAG_TRAILING:
        found = msgpack.unpackb(unknown[-1][1], use_list=False)
        if type(found) is tuple and found and pack_trailing(found) == unknown[-1][1]:
            trailing, unknown = found, unknown[:-1]
    return Extra(trailing, unknown)


def _decode_field(data: bytes, position: int, end: int, spec: FieldSpec) -> tuple[Any, int]:
    if spec.nullable:
        length, _ = read_uvarint(data, position, end)
        if length == 0:
            return None, position + 1
    return _decode_value(data, position, end, spec.kind)


def _decode_value(data: bytes, position: int, end: int, kind: Kind) -> tuple[Any, int]:
    if isinstance(kind, ArrayOf):
        return _decode_array(data, position, end, kind.element)
    if isinstance(kind, StructOf):
        values, position = _decode_fields(data, position, end, kind.fields)
        return kind.struct(**values), position
    if kind.name == "string":
        return read_compact_string(data, position, end)
    if kind.name == "bytes":
        length, position = read_uvarint(data, position, end)
        return read_bytes(data, position, end, length - 1)
    if kind.name == "uuid":
        return read_bytes(data, position, end, 16)
    if kind.name == "bool":
        raw, position = read_bytes(data, position, end, 1)
        return raw != b"\x00", position
    fixed = _FIXED[kind.name]
    if position + fixed.size > end:
        raise ValueError(f"{kind.name} cut off")
    return fixed.unpack_from(data, position)[0], position + fixed.size


def _decode_array(
    data: bytes, position: int, end: int, element: Kind
) -> tuple[tuple[Any, ...], int]:
    length, position = read_uvarint(data, position, end)
    count = length - 1
    if not 0 <= count <= end - position:
        raise ValueError(f"{count} array elements in {end - position} bytes")
    items = []
    for _ in range(count):
        item, position = _decode_value(data, position, end, element)
        items.append(item)
    return tuple(items), position
