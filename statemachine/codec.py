"""Encode and decode records: the common entry of both codecs.

The first byte of a value identifies its codec: a msgpack array begins with 0x90 to 0x9f, 0xdc or
0xdd, Kafka's framing with its frame version, 0x01. Readers accept both; the cluster's
configuration decides which one it writes.

Guarantee: for any bytes, decoding returns a record or raises ``RecordCodecError`` or
``UnknownRecordError``, and nothing else.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from quorum.errors import RecordCodecError
from statemachine.codec_kafka import (
    FRAME_VERSION,
    RecordHeaders,
    carried_headers,
    decode_kafka_frame,
    encode_kafka_frame,
)
from statemachine.codec_native import decode_native, encode_native
from statemachine.records import MetadataRecord, lowest_version

DecodeRecord: TypeAlias = Callable[[bytes], MetadataRecord]
"""Decoder of one value; raises as ``decode_record`` does."""

_ARRAY_FIRST_BYTES = frozenset((*range(0x90, 0xA0), 0xDC, 0xDD))


def encode_record(record: MetadataRecord, version: int | None = None) -> bytes:
    """Encode a record in the native codec; by default in the lowest version that carries it.

    Raises:
        UnknownRecordError: This type has no such version.
        RecordCodecError: A field does not fit its type or the version.
    """
    if version is None:
        # Nearly every record has one version only.
        version = lowest_version(record) if record.VERSION_MAX else 0
    return encode_native(record, version)


def encode_kafka(
    record: MetadataRecord, version: int | None = None, headers: RecordHeaders = ()
) -> bytes:
    """Encode a record in Kafka's framing; by default in the lowest version that carries it.

    ``headers`` are the record headers of the batch that it begins. They go into the value,
    because Kafka's readers refuse real record headers.

    Raises:
        UnknownRecordError: This type has no such version.
        RecordCodecError: A field does not fit, or the record is a broker event.
    """
    version = lowest_version(record) if version is None else version
    return encode_kafka_frame(record, version, headers)


def batch_headers(headers: RecordHeaders, value: bytes | None) -> RecordHeaders:
    """Return the headers of a batch, given its first record's headers and value.

    Raises:
        UnknownRecordError: A type or version this release does not know.
        RecordCodecError: The value is in Kafka's framing and not one well-formed record.
    """
    if headers or not value or value[0] != FRAME_VERSION:
        return headers
    return carried_headers(value)


def is_kafka_value(value: bytes) -> bool:
    """Whether a record (not empty) is in Kafka's framing rather than the native codec."""
    return value[0] == FRAME_VERSION


def decode_record(value: bytes) -> MetadataRecord:
    """Decode a record of either codec, which the first byte identifies.

    Raises:
        UnknownRecordError: A type or version this release does not know.
        RecordCodecError: Bytes that are not one well-formed record.
    """
    if not value:
        raise RecordCodecError("an empty value is no metadata record")
    first = value[0]
    if first in _ARRAY_FIRST_BYTES:
        return decode_native(value)
    if first == FRAME_VERSION:
        return decode_kafka_frame(value)
    raise RecordCodecError(f"first byte 0x{first:02x} belongs to neither record codec")
