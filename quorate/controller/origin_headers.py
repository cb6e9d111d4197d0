"""Record headers that say where a batch comes from (ADR 4)."""

from __future__ import annotations

import msgpack

from quorate.controller.requests import RequestContext
from statemachine.open_image import HEADER_PRINCIPAL
from statemachine.producers import (
    HEADER_ANSWER,
    HEADER_FINGERPRINT,
    HEADER_OPEN,
    HEADER_REQUEST,
    encode_open,
)

RecordHeaders = tuple[tuple[str, bytes | None], ...]


def origin_headers(context: RequestContext) -> RecordHeaders:
    """Return who and why, for a batch that a request made necessary."""
    found = (
        (HEADER_PRINCIPAL, context.principal),
        ("client-id", context.client_id),
        ("reason", context.reason),
        ("traceparent", context.traceparent),
    )
    return tuple((name, text.encode("utf-8", "replace")) for name, text in found if text)


def command_headers(
    context: RequestContext, result: dict[str, object], fingerprint: bytes
) -> RecordHeaders:
    """Return who, why and which request, for the first record of the command's batch."""
    headers: list[tuple[str, bytes | None]] = []
    if context.principal:
        headers.append((HEADER_PRINCIPAL, context.principal.encode("utf-8", "replace")))
    if context.client_id:
        headers.append(("client-id", context.client_id.encode("utf-8", "replace")))
    if context.request_id:
        headers.append((HEADER_REQUEST, context.request_id.encode("utf-8", "replace")))
    if context.reason:
        headers.append(("reason", context.reason.encode("utf-8", "replace")))
    if context.traceparent:
        headers.append(("traceparent", context.traceparent.encode("utf-8", "replace")))
    if context.producer_id >= 0:
        headers.append((HEADER_OPEN, encode_open(context.oldest_open)))
        headers.append((HEADER_FINGERPRINT, fingerprint))
    if result:
        headers.append((HEADER_ANSWER, msgpack.packb(result)))
    return tuple(headers)
