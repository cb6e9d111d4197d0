"""This replica's log digests, put where messages need them.

The core compares opaque values; here they are looked up: the digest that a Fetch carries when
it leaves, this replica's own beside one that arrives, and the answers to ChainDigest. A value
that cannot be read is "not known", which never passes for equal.
"""

from __future__ import annotations

from dataclasses import replace

from quorum.core.messages.chain_messages import ChainDigestResponse
from quorum.core.messages.fetch_messages import FetchRequest, ReceivedFetchRequest
from quorum.core.messages.message_types import Incoming, Message
from quorum.errors import ErrorCode, StorageError
from quorum.ports import LogStore
from quorum.types import NO_NODE, DigestAt
from quorum.values import copier

_UNKNOWN = DigestAt(-1, b"")
_with_digest = copier(FetchRequest, "digest")


class ChainDigests:
    """Looks digests up in one log. Used on the driver's thread, while the writer appends."""

    def __init__(self, log: LogStore) -> None:
        self._log = log

    def leaving(self, message: Message) -> Message:
        """A message as it leaves: a Fetch with the digest of what it acknowledges.

        The position must be the log's end with the same epoch: a Fetch that waited for the disk
        while its records were replaced would otherwise carry the digest of another history.
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
        """A message for the core: this replica's digests beside those it carries."""
        if isinstance(message, FetchRequest):
            is_compared = message.digest and message.replica.id != NO_NODE
            own_digest = self._at(message.fetch_offset) if is_compared else b""
            return ReceivedFetchRequest(message, own_digest)
        if type(message) is ChainDigestResponse and message.points:
            return replace(message, own=self._points(message.offsets))
        return message

    def _at(self, offset: int) -> bytes:
        log = self._log
        if not log.start.offset <= offset <= log.end.offset:
            return b""
        try:
            return log.digest_at(offset)
        except StorageError:
            return b""

    def _points(self, offsets: tuple[int, ...]) -> tuple[DigestAt, ...]:
        return tuple(self._before(offset) for offset in offsets)

    def _before(self, offset: int) -> DigestAt:
        try:
            return self._log.digest_before(offset)
        except StorageError:
            return _UNKNOWN
