"""Verify the records of a Fetch answer and describe them for the core.

The core handles offsets, epochs and voter sets, never bytes. For any bytes from a peer, this
module returns either an exact description or a rejection.
"""

from __future__ import annotations

from crc32c import crc32c

from quorum.batch import CONTROL_BIT, BatchHeader, iterate_records, scan_batches
from quorum.control import decode_control
from quorum.control_records import Voters
from quorum.core.contract.reasons import IgnoreReason, Problem
from quorum.core.messages.fetch_messages import FetchResponse, ReceivedFetchResponse
from quorum.core.messages.message_types import Incoming, Response
from quorum.core.messages.received_records import ReceivedRecords, VotersAt
from quorum.core.messages.snapshot_messages import FetchSnapshotResponse
from quorum.errors import CorruptBatchError
from quorum.types import EpochStart


def proven(message: Response, log_end: int) -> tuple[Incoming, Problem | None]:
    """Verify a peer's response for a log that ends at ``log_end``.

    Records are verified and described, and a checkpoint chunk's checksum is checked. Other
    responses pass unchanged.

    Returns:
        The message for the core, and the reason to reject it, else None. Records are rejected
        mostly because another fetch has overtaken theirs.
    """
    if type(message) is FetchResponse:
        records = describe_records(message.records, log_end) if message.records else None
        if message.records and records is None:
            return message, (IgnoreReason.BAD_RECORDS, "")
        return ReceivedFetchResponse(message, records), None
    if type(message) is FetchSnapshotResponse and not _is_intact(message):
        return message, (IgnoreReason.BAD_CHUNK, "checksum")
    return message, None


def _is_intact(message: FetchSnapshotResponse) -> bool:
    return not message.chunk or crc32c(message.chunk) == message.chunk_crc


def describe_records(data: bytes, expected_base: int) -> ReceivedRecords | None:
    """Verify whole batches that should begin at ``expected_base``.

    Checks every checksum, contiguous offsets, known epochs that do not fall, and readable control
    records.

    Returns:
        The description, or None if ``data`` is invalid or empty: the caller discards all of it and
        fetches again.
    """
    try:
        batches = scan_batches(data)
        if not batches or batches[0].base_offset != expected_base or batches[0].epoch < 0:
            return None
        epochs: list[EpochStart] = []
        voters: list[VotersAt] = []
        epoch = -1
        for batch in batches:
            if batch.epoch != epoch:
                epoch = batch.epoch
                epochs.append(EpochStart(epoch, batch.base_offset))
            if batch.attributes & CONTROL_BIT:
                voters += _voter_sets(data, batch)
    except CorruptBatchError:
        return None
    return ReceivedRecords(
        expected_base, batches[-1].end_offset, tuple(epochs), tuple(voters), data, batches
    )


def _voter_sets(data: bytes, batch: BatchHeader) -> list[VotersAt]:
    found: list[VotersAt] = []
    for record in iterate_records(data, batch):
        control = decode_control(record)
        if isinstance(control, Voters):
            found.append(
                VotersAt(record.offset, control.voters, control.removed, control.incarnation)
            )
    return found
