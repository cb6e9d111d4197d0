"""Copies of real messages, changed so that every receiver must refuse or ignore them.

None of them is a plausible lie: no copy claims an offset, a vote or an epoch that could be true.
The changes are those that docs/reference/handlers.md has a receiver check: another cluster,
meaningless numbers, epochs of the far past or future, another addressee, answers without a request,
and bytes that do not match their checksum.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from quorum.core.messages.bootstrap_messages import BootstrapRequest
from quorum.core.messages.chain_messages import ChainDigestRequest
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message, Request
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteRequest
from quorum.types import OffsetAndEpoch, ReplicaKey

_NO_EPOCH_OF_OURS = (1 << 31) - 1
"""Beyond the last epoch; no history reaches the two epochs before it."""
_NEVER_DRAWN = 1 << 50
"""Added to a request id: request ids start from 40 random bits."""


def _of_another_cluster(message: Any, _: random.Random) -> Any:
    return replace(message, cluster_id="another") if isinstance(message, Request) else None


def _meaningless(message: Any, rng: random.Random) -> Any:
    match message:
        case FetchRequest():
            senseless: dict[str, Any] = {
                rng.choice(("fetch_offset", "max_wait_ms", "max_bytes")): -rng.randint(1, 1 << 31)
            }
            return replace(message, **senseless)
        case VoteRequest():
            return replace(message, last=OffsetAndEpoch(-1, message.last.epoch))
        case FetchSnapshotRequest():
            return replace(message, position=-1)
        case ChainDigestRequest():
            return replace(message, offsets=(0,) * 1000)
        case _:
            return None


def _long_gone(message: Any, _: random.Random) -> Any:
    match message:
        case FetchRequest():
            return replace(message, epoch=0, last_fetched_epoch=0)
        case VoteRequest() | BootstrapRequest() | ChainDigestRequest():
            return None
        case _:
            return replace(message, epoch=0)


def _to_come(message: Any, rng: random.Random) -> Any:
    """A Fetch of a later epoch does not depose a leader; no answer may have such an epoch."""
    if isinstance(message, FetchRequest | FetchSnapshotRequest) or not isinstance(message, Request):
        return replace(message, epoch=_NO_EPOCH_OF_OURS - rng.randrange(3))
    return None


def _to_another_disk(message: Any, _: random.Random) -> Any:
    if isinstance(message, VoteRequest | BeginQuorumEpochRequest):
        return replace(message, voter=ReplicaKey(message.voter.id, b"another disk's  "))
    return None


def _never_asked(message: Any, _: random.Random) -> Any:
    if isinstance(message, Request):
        return None
    return replace(message, request_id=message.request_id + _NEVER_DRAWN)


def _damaged(message: Any, _: random.Random) -> Any:
    match message:
        case FetchResponse() if message.records:
            return replace(message, records=message.records[:-1] + _flipped(message.records[-1:]))
        case FetchSnapshotResponse() if message.chunk:
            return replace(message, chunk=_flipped(message.chunk[:1]) + message.chunk[1:])
        case _:
            return None


def _flipped(byte: bytes) -> bytes:
    return bytes([byte[0] ^ 1])


KINDS: dict[str, Callable[[Any, random.Random], Any]] = {
    "another-cluster": _of_another_cluster,
    "meaningless": _meaningless,
    "long-gone": _long_gone,
    "to-come": _to_come,
    "another-disk": _to_another_disk,
    "never-asked": _never_asked,
    "damaged": _damaged,
}


def garbled(message: Message, rng: random.Random) -> tuple[str, Message] | None:
    """Return the kind of change and the copy; None where that kind does not fit the message."""
    name = rng.choice(list(KINDS))
    made: Message | None = KINDS[name](message, rng)
    return None if made is None else (name, made)
