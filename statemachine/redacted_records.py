"""Records without their secrets, for readers that are no replica and no operator.

A redacted record keeps its type, version and identity, so that readers see who has a credential and
since when. Its batch differs from that of the log: digests go on from those of the log.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from quorum.batch import BatchHeader, encode_batch, first_headers, record_values
from quorum.errors import RecordCodecError, UnknownRecordError
from statemachine.codec import batch_headers, decode_record, encode_kafka, is_kafka_value
from statemachine.codec_native import encode_native
from statemachine.payload import written_version
from statemachine.records import (
    ConfigRecord,
    MetadataRecord,
    NoOpRecord,
    UserScramCredentialRecord,
)
from statemachine.redaction import REDACTED, SECRET_WORDS, is_secret_config

_KEYS: Final = frozenset({ConfigRecord.API_KEY, UserScramCredentialRecord.API_KEY})
"""Types of records that may hold a secret."""
_WORDS: Final = tuple(word.encode() for word in SECRET_WORDS)
_SCRAM_START: Final = bytes((UserScramCredentialRecord.API_KEY, 0))
"""API key and version 0 of a credential, in both codecs."""
_ARRAY_16: Final = 0xDC


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
    return record


def may_hold_secrets(data: bytes) -> bool:
    """Whether plain batches may hold a secret: a quick test that finds all, and more."""
    if _SCRAM_START in data:
        return True
    lower = data.lower()
    return any(word in lower for word in _WORDS)


def redacted_batch(data: bytes, header: BatchHeader) -> bytes | None:
    """Return one batch of ``data`` without its secrets; None if it has none.

    Raises:
        CorruptBatchError: The records do not match the header.
    """
    whole = data[header.position : header.position + header.size]
    if header.is_control or (header.codec == 0 and not may_hold_secrets(whole)):
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
        headers=first_headers(data, header),
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
            return encode_kafka(hidden, version, batch_headers((), value))
        return encode_native(hidden, version)
    except (UnknownRecordError, RecordCodecError):
        # Of a later release: what it holds is not known here.
        return encode_kafka(NoOpRecord()) if is_kafka else encode_native(NoOpRecord(), 0)


def _api_key(value: bytes) -> int:
    """Return the API key of an encoded record if it has one byte; else any other number."""
    at = 3 if value[:1] == bytes((_ARRAY_16,)) else 1
    return value[at] if len(value) > at else -1
