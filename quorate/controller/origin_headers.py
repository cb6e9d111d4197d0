"""Record headers that say where a batch comes from (ADR 4)."""

from __future__ import annotations

from functools import lru_cache

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

_CALLERS_CACHED_MAX = 1024


@lru_cache(maxsize=_CALLERS_CACHED_MAX)
def _caller_headers(principal: str, client_id: str, reason: str) -> RecordHeaders:
    """Return what most commands of a stream have in common."""
    found = ((HEADER_PRINCIPAL, principal), ("client-id", client_id), ("reason", reason))
    return tuple([(name, text.encode("utf-8", "replace")) for name, text in found if text])


def origin_headers(context: RequestContext) -> RecordHeaders:
    """Return who and why, for a batch that a request made necessary."""
    found = _caller_headers(context.principal, context.client_id, context.reason)
    if context.traceparent:
        found += (("traceparent", context.traceparent.encode("utf-8", "replace")),)
    return found


def command_headers(
    context: RequestContext, result: dict[str, object], fingerprint: bytes
) -> RecordHeaders:
    """Return who, why and which request, for the first record of the command's batch."""
    headers = [*origin_headers(context)]
    if context.request_id:
        headers.append((HEADER_REQUEST, context.request_id.encode("utf-8", "replace")))
    if context.producer_id >= 0:
        headers.append((HEADER_OPEN, encode_open(context.oldest_open)))
        headers.append((HEADER_FINGERPRINT, fingerprint))
    if result:
        headers.append((HEADER_ANSWER, msgpack.packb(result)))
    return tuple(headers)
