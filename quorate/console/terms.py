"""Which leadership terms the log still knows: where each began, when, who led, and why."""

from __future__ import annotations

from typing import Final, NamedTuple

from quorate.client import Client, OffsetOutOfRangeError
from quorum.batch import iterate_records, scan_batches
from quorum.control import decode_control
from quorum.control_origin import origin_headers
from quorum.control_records import LeaderChange
from quorum.v1.metadata_pb2 import FetchLogRequest

TERMS_MAX: Final = 200
"""Most terms that are looked up, the newest ones."""


class Term(NamedTuple):
    """One leader's time: it begins with the batch at ``start_offset``."""

    epoch: int
    start_offset: int
    time_ms: int
    """When its first batch was appended, milliseconds since 1970."""
    leader_id: int | None
    principal: str | None = None
    """Who had leadership transferred to it; None: nobody, or it is not known."""
    reason: str | None = None


async def find_terms(client: Client, newest_epoch: int, known: frozenset[int]) -> list[Term]:
    """Return the terms from ``newest_epoch`` down to a known one, newest first.

    Raises:
        ClientError: The leader cannot be asked.
    """
    found: list[Term] = []
    epoch = newest_epoch
    while epoch >= 0 and epoch not in known and len(found) < TERMS_MAX:
        before = await client.offset_for_leader_epoch(epoch - 1) if epoch > 0 else None
        start = 0 if before is None or before.end_offset < 0 else before.end_offset
        term = await _first_batch(client, start)
        if term is None:
            break
        found.append(term)
        if before is None or before.leader_epoch < 0:
            break
        epoch = before.leader_epoch
    return found


async def _first_batch(client: Client, offset: int) -> Term | None:
    """The term of the batch at ``offset``; None if it is trimmed, or not committed yet."""
    try:
        answer = await client.fetch_log(FetchLogRequest(offset=offset, max_bytes=1))
    except OffsetOutOfRangeError:
        return None
    for header in scan_batches(answer.records):
        leader, who = None, {}
        if header.is_control:
            for record in iterate_records(answer.records, header):
                content = decode_control(record)
                if isinstance(content, LeaderChange):
                    leader = content.leader_id
                    who = {name: (value or b"").decode() for name, value in origin_headers(content)}
        return Term(
            header.epoch, header.base_offset, header.max_timestamp, leader,
            who.get("principal"), who.get("reason"),
        )  # fmt: skip
    return None
