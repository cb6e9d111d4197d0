"""A message as its receiver gets it, where there is no transport or no runtime."""

from __future__ import annotations

from typing import Any, Final

from quorum.core.messages.fetch_messages import (
    FetchRequest,
    FetchResponse,
    ReceivedFetchRequest,
    ReceivedFetchResponse,
)
from quorum.core.messages.message_types import (
    REQUESTS,
    Incoming,
    Message,
    Received,
    ReceivedRequest,
)

_REQUESTS: Final = frozenset(REQUESTS)


def arrived(message: Message, *, is_proven: bool = True) -> Received:
    """A message as the transport hands it on."""
    is_request = type(message) in _REQUESTS
    return ReceivedRequest(message, is_proven) if is_request else message  # type: ignore[arg-type,return-value]


def received(message: Message | Incoming, *, own_digest: bytes = b"") -> Incoming:
    """A message as the runtime hands it on; here records are their own description.

    One that is in its last stage is returned as it is.
    """
    if type(message) in _REQUESTS:
        message = arrived(message)  # type: ignore[arg-type]
    if isinstance(message, ReceivedRequest) and isinstance(message.request, FetchRequest):
        return ReceivedFetchRequest(message.request, message.is_proven, own_digest)
    if isinstance(message, FetchResponse):
        records: Any = message.records or None
        return ReceivedFetchResponse(message, records)
    return message  # type: ignore[return-value]
