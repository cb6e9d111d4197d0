"""Messages at the limits of the numbers and positions that they carry."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product
from typing import Any

from quorum.core.messages.chain_messages import CHAIN_OFFSETS_MAX
from quorum.core.messages.fetch_messages import (
    FetchRequest,
    FetchResponse,
    Subtree,
)
from quorum.core.messages.message_types import Incoming
from quorum.core.protocol.refusals import OFFSET_MAX
from quorum.types import EPOCH_MAX, OffsetAndEpoch, ReplicaKey
from simulation.harness.arrival import arrived, received
from tests.support.core_disk import key
from tests.support.core_transcript import text_of

NAMED = {
    EPOCH_MAX: "EPOCH_MAX", EPOCH_MAX + 1: "EPOCH_MAX+1",
    OFFSET_MAX: "OFFSET_MAX", OFFSET_MAX + 1: "OFFSET_MAX+1",
}  # fmt: skip


def limits(value: Any) -> list[Any]:
    """Values of one type that rules may treat differently."""
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int):
        around = (-2, -1, 0, 1, value - 1, value + 1)
        return sorted(
            {*around, *(top + more for top in (EPOCH_MAX, OFFSET_MAX) for more in (0, 1))}
        )
    if isinstance(value, OffsetAndEpoch):
        return [
            *(OffsetAndEpoch(each, value.epoch) for each in limits(value.offset)),
            *(OffsetAndEpoch(value.offset, each) for each in limits(value.epoch)),
        ]
    if isinstance(value, ReplicaKey):
        return [ReplicaKey(each, value.directory_id) for each in (-2, -1, 0, 1, 3, 77)] + [
            ReplicaKey(value.id, b"other disk here!")
        ]
    if isinstance(value, tuple) and value and isinstance(value[0], int):
        tops = ((-1,), (0,), (OFFSET_MAX,), (OFFSET_MAX + 1,))
        return [
            (),
            *tops,
            *((3,) * count for count in range(CHAIN_OFFSETS_MAX - 1, CHAIN_OFFSETS_MAX + 2)),
        ]
    return []


def shown(value: Any) -> str:
    """Return a value as text, with names for values beyond every real one."""
    if isinstance(value, tuple) and len(value) > 3:
        return f"{len(value)} of them"
    if value in NAMED:
        return NAMED[value]
    if isinstance(value, ReplicaKey) and value.directory_id == b"other disk here!":
        return f"{value.id} with another disk"
    return text_of(value)


def fetches(request: FetchRequest) -> Iterator[tuple[str, FetchRequest | Incoming]]:
    """Yield Fetch requests from every position around a log of eight records and three epochs."""
    for offset, epoch in product(range(11), range(5)):
        now = replace(request, fetch_offset=offset, last_fetched_epoch=epoch, max_wait_ms=0)
        yield f"{offset}/{epoch}", now
    for known, wait_ms in product((-1, 7, 8, 9), (0, 500, 501)):
        asked = replace(request, high_watermark=known, max_wait_ms=wait_ms)
        yield f"at the end, knows {known}, waits {wait_ms}", asked
    above = replace(request, fetch_offset=request.fetch_offset + 2)
    yield "beyond the end, waits", above
    for digest, own, offset in product((b"", b"t"), (b"", b"o", b"t"), (5, 8)):
        compared = replace(request, fetch_offset=offset, digest=digest)
        label = f"at {offset}, digest {digest.decode() or '-'}, ours {own.decode() or '-'}"
        yield label, received(compared, own_digest=own)
    for low, is_provisional in product((0, 3, 8), (False, True)):
        subtree = Subtree(low, 2, ((20, request.replica.id), (21, 20)), is_provisional)
        yield (
            f"a subtree from {low}, provisional {is_provisional}",
            replace(request, subtree=subtree),
        )
    yield "has lost records", replace(request, has_lost_records=True)
    yield "unproven", arrived(request, is_proven=False)
    yield "disqualified", replace(request, is_disqualified=True)


def fetch_answers(answer: FetchResponse, me: ReplicaKey) -> Iterator[tuple[str, FetchResponse]]:
    """Yield answers to a Fetch of such a log's end."""
    for offset, epoch in product((-1, 0, 3, 4, 5, 7, 8, 9), (-1, 0, 1, 2, 3, 4)):
        point = OffsetAndEpoch(offset, epoch)
        yield f"diverging {offset}/{epoch}", replace(answer, diverging=point)
        yield f"snapshot {offset}/{epoch}", replace(answer, snapshot_id=point)
    for mark in (-1, 0, 7, 8, 9, 20):
        yield f"high watermark {mark}", replace(answer, high_watermark=mark)
    for start in (-1, 0, 3, 8, 9):
        yield f"log start {start}", replace(answer, log_start_offset=start)
    paths = ((key(8),), (key(7),), (key(8), me), tuple(map(key, range(20, 24))))
    for path, age_ms in product((*paths, tuple(map(key, range(20, 25)))), (-1, 0, 4000)):
        yield (
            f"path {text_of(path)}, contact {age_ms} ms ago",
            replace(answer, path=path, contact_age_ms=age_ms),
        )
    for age_ms in (-1, 0, 100):
        yield f"leader age {age_ms} ms", replace(answer, leader_age_ms=age_ms)
