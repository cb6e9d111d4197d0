"""Records without their secrets, for readers that are no replica and no operator.

A redacted record keeps its type, version and identity, so that readers see who has a credential and
since when. Its batch differs from that of the log: digests go on from those of the log. Digests of
commands are left out: with them a reader could try passwords until one fits.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import msgpack

from quorum.batch import BatchHeader, encode_batch, first_headers, record_values
from quorum.errors import RecordCodecError, UnknownRecordError
from quorum.varint import read_uvarint
from statemachine.codec import batch_headers, decode_record, encode_kafka, is_kafka_value
from statemachine.codec_kafka import FRAME_VERSION, RecordHeaders
from statemachine.codec_native import encode_native
from statemachine.payload import written_version
from statemachine.producers import HEADER_FINGERPRINT
from statemachine.records import (
    AnsweredRequestsRecord,
    ConfigRecord,
    MetadataRecord,
    NoOpRecord,
    ProducerStateRecord,
    UserScramCredentialRecord,
)
from statemachine.redaction import REDACTED, is_secret_config

_KEYS: Final = frozenset({ConfigRecord.API_KEY, UserScramCredentialRecord.API_KEY})
"""Types of records that may hold a secret."""
_KEY: Final = bytes((UserScramCredentialRecord.API_KEY,))
_LONG_KEY: Final = bytes((FRAME_VERSION, UserScramCredentialRecord.API_KEY | 0x80))
"""In Kafka's framing, the key as a number of more bytes than it needs."""
_BEFORE_KEY: Final = frozenset(
    # The frame's version; the head of a short array; a number of more bytes than it needs.
    (FRAME_VERSION, *range(0x90, 0xA0), 0xCC, 0xD0, 0x00)
)
_PLAIN_MAX: Final = 0x80
"""Smaller numbers are one byte in both codecs."""
_ARRAY_16: Final = b"\xdc"
_ARRAY_32: Final = b"\xdd"
_LONG_ARRAYS: Final = frozenset(_ARRAY_16 + _ARRAY_32)
_FRAME: Final = bytes((FRAME_VERSION,))
_STEMS: Final = (b"pass", b"secret", b"jaas.", b"credential", b".key", b".token")
"""Each of ``SECRET_WORDS`` has one of these in it."""


def without_secrets(record: MetadataRecord) -> MetadataRecord:
    """Return the record with its secrets replaced; the same object if it has none."""
    if isinstance(record, UserScramCredentialRecord):
        return replace(record, salt=b"", stored_key=b"", server_key=b"", extra=None)
    if (
        isinstance(record, ConfigRecord)
        and record.value is not None
        and is_secret_config(record.name)
    ):
        return replace(record, value=REDACTED, extra=None)
    if isinstance(record, ProducerStateRecord) and record.fingerprints:
        return replace(record, fingerprints=())
    if isinstance(record, AnsweredRequestsRecord):
        return replace(
            record, requests=tuple(replace(each, fingerprint=b"") for each in record.requests)
        )
    return record


def possible_secrets(data: bytes) -> list[int]:
    """Return where plain batches may hold secrets, ascending: a quick test that finds all, and
    more.
    """
    found = [at for at in _places(data, _KEY) if _may_begin(data, at)]
    found += _places(data, _LONG_KEY)
    lower = data.lower()
    for stem in _STEMS:
        found += _places(lower, stem)
    return sorted(found)


def _places(data: bytes, wanted: bytes) -> Iterator[int]:
    at = data.find(wanted)
    while at >= 0:
        yield at
        at = data.find(wanted, at + 1)


def _may_begin(data: bytes, at: int) -> bool:
    """Whether the byte at ``at`` may be the API key of a record of any version."""
    head = data[max(0, at - 5) : at]
    return head[-1:] != b"" and (
        head[-1] in _BEFORE_KEY or head[-3:-2] == _ARRAY_16 or head[-5:-4] == _ARRAY_32
    )


def redacted_batch(data: bytes, header: BatchHeader) -> bytes | None:
    """Return one batch of ``data`` without its secrets; None if it has none.

    Raises:
        CorruptBatchError: The records do not match the header.
    """
    if header.is_control:
        return None
    values = record_values(data, header)
    hidden = [_redacted_value(value) for value in values]
    if all(value is None for value in hidden):
        return None
    return encode_batch(
        [old if new is None else new for old, new in zip(values, hidden, strict=True)],
        base_offset=header.base_offset,
        epoch=header.epoch,
        timestamp=header.max_timestamp,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        headers=_shown(first_headers(data, header)),
    )


def _redacted_value(value: bytes) -> bytes | None:
    """Return an encoded record without its secrets, in the same codec; None if it has none."""
    if _api_key(value) not in _KEYS:
        return None
    is_kafka = is_kafka_value(value)
    try:
        record = decode_record(value)
        hidden, version = without_secrets(record), written_version(value)
        if hidden is record:
            return None
        if is_kafka:
            return encode_kafka(hidden, version, _shown(batch_headers((), value)))
        return encode_native(hidden, version)
    except (UnknownRecordError, RecordCodecError):
        # Of a later release: what it holds is not known here.
        return encode_kafka(NoOpRecord()) if is_kafka else encode_native(NoOpRecord(), 0)


def _shown(headers: RecordHeaders) -> RecordHeaders:
    """Return the record headers of a batch without the digest of its command."""
    return [each for each in headers if each[0] != HEADER_FINGERPRINT]


def _api_key(value: bytes) -> int:
    """Return the API key of an encoded record; -1 if it has none.

    The usual form is one byte behind the first one; other writers may use more than they need.
    """
    if len(value) > 1 and value[1] < _PLAIN_MAX and value[0] not in _LONG_ARRAYS:
        return value[1]
    try:
        if value[:1] == _FRAME:
            return read_uvarint(value, 1, len(value))[0]
        unpacker = msgpack.Unpacker()
        unpacker.feed(value)
        unpacker.read_array_header()
        key = unpacker.unpack()
    except (ValueError, TypeError, msgpack.UnpackException):
        return -1
    return key if type(key) is int else -1
