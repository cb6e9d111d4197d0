"""Add this replica's log digests to messages.

The core compares opaque digests; this module looks them up: the digest of an outgoing Fetch, this
replica's own digest for an incoming one, and the answers to ChainDigest. A digest that cannot be
read is "unknown", which never counts as equal.
"""

from __future__ import annotations

from dataclasses import replace

from quorum.core.messages.chain_messages import ChainDigestResponse
from quorum.core.messages.fetch_messages import FetchRequest, ReceivedFetchRequest
from quorum.core.messages.message_types import Incoming, Message, ReceivedRequest
from quorum.errors import ErrorCode, StorageError
from quorum.ports import LogStore
from quorum.types import NO_NODE, DigestAt
from quorum.values import copier

_UNKNOWN = DigestAt(-1, b"")
_with_digest = copier(FetchRequest, "digest")


class ChainDigests:
    """Looks up digests in one log. Used on the driver's thread, while the writer appends."""

    def __init__(self, log: LogStore) -> None:
        self._log = log

    def leaving(self, message: Message) -> Message:
        """Return a message for sending: a Fetch with the digest of the log that it acknowledges.

        The position must be the log's end with the same epoch. Otherwise a Fetch whose records were
        replaced while it waited for the disk would carry the digest of another history.
        """
        if type(message) is FetchRequest:
            end, digest = self._log.tip
            if end.offset == message.fetch_offset and end.epoch == message.last_fetched_epoch:
                return _with_digest(message, digest)
        elif (
            type(message) is ChainDigestResponse
            and message.offsets
            and message.error == ErrorCode.NONE
        ):
            return replace(message, points=self._points(message.offsets))
        return message

    def arriving(self, message: Incoming) -> Incoming:
        """Return a message for the core: with this replica's digests beside those it carries."""
        if type(message) is ReceivedRequest and type(message.request) is FetchRequest:
            request = message.request
            is_compared = request.digest and request.replica.id != NO_NODE
            own_digest = self._at(request.fetch_offset) if is_compared else b""
            return ReceivedFetchRequest(request, message.is_proven, own_digest)
        if type(message) is ChainDigestResponse and message.points:
            return replace(message, own=self._points(message.offsets))
        return message

    def _at(self, offset: int) -> bytes:
        try:
            return self._log.digest_at(offset)
        except StorageError:
            return b""

    def _points(self, offsets: tuple[int, ...]) -> tuple[DigestAt, ...]:
        return tuple(self._before(offset) for offset in offsets)

    def _before(self, offset: int) -> DigestAt:
        try:
            return self._log.digest_before(offset)
        except StorageError:
            return _UNKNOWN
