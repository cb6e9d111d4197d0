"""The batches of one answer of FetchLog, in whichever form they came: their records, and the log
digest on both sides of each.

Encoded batches are checked here, and the digest is computed from their bytes. Of typed ones the
node names it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from quorate.client.batches import LogRecord, read_batches
from quorate.client.errors import ProtocolError
from quorate.client.results.metadata import ChangeBatch, FetchLogResponse
from quorum.digest import fold


class FetchedBatch(NamedTuple):
    """One batch: offsets [base_offset, end_offset) of one epoch. An unknown digest is empty."""

    base_offset: int
    end_offset: int
    leader_epoch: int
    records: list[LogRecord]
    """Empty for a control batch."""
    digest_below: bytes
    digest_behind: bytes


def fetched_batches(
    answer: FetchLogResponse, digest: bytes, *, verify_checksums: bool
) -> Iterator[FetchedBatch]:
    """Yield the batches in order; ``digest`` is that of the log below them, where it is known.

    Raises:
        ProtocolError: The answer is not what a log contains.
    """
    digest = digest or answer.log_digest
    end = -1
    for batch in answer.batches:
        if end not in (-1, batch.base_offset) or batch.end_offset <= batch.base_offset:
            raise ProtocolError(f"offset {batch.base_offset} follows {end}")
        end = batch.end_offset
        found = _typed_records(batch)
        yield FetchedBatch(batch.base_offset, end, batch.epoch, found, digest, batch.log_digest)
        digest = batch.log_digest
    # Behind a batch that came without its secrets, the digest is the one that the node names.
    redacted = {each.base_offset: each.log_digest for each in answer.redacted}
    for each in read_batches(answer.records, verify_checksums=verify_checksums):
        folded = fold(digest, each.data) if digest else b""
        behind = redacted.get(each.base_offset, folded)
        yield FetchedBatch(
            each.base_offset, each.end_offset, each.leader_epoch, each.records(), digest, behind
        )
        digest = behind


def _typed_records(batch: ChangeBatch) -> list[LogRecord]:
    """Return the records of a batch; its headers are the first one's, as in the log."""
    headers = tuple((each.name, each.value) for each in batch.headers)
    return [
        LogRecord(
            batch.base_offset + place,
            batch.epoch,
            batch.timestamp_ms,
            None,
            None,
            () if place else headers,
            typed=typed,
        )
        for place, typed in enumerate(batch.typed_records)
    ]
