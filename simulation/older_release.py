"""A release that knows fewer record types, for nodes that were rolled back to it."""

from __future__ import annotations

from collections.abc import Collection

from quorum.errors import UnknownRecordError
from statemachine.codec import DecodeRecord, decode_record
from statemachine.records import MetadataRecord


def decoder_without(api_keys: Collection[int]) -> DecodeRecord:
    """Return a decoder of a release that does not know the record types ``api_keys``."""
    if not api_keys:
        return decode_record

    def decode(value: bytes) -> MetadataRecord:
        record = decode_record(value)
        if record.API_KEY in api_keys:
            raise UnknownRecordError(
                f"unknown record type, api key {record.API_KEY}", api_key=record.API_KEY, version=0
            )
        return record

    return decode
