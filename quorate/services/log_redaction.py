"""Batches of the log as clients get them: without secrets, unless an operator asks for these."""

from __future__ import annotations

from bisect import bisect_left

from quorate.services.access import Access
from quorate.services.errors import RequestRefusedError
from quorum.batch import BatchHeader, scan_batches
from quorum.errors import ErrorCode
from statemachine.redacted_records import possible_secrets, redacted_batch


def check_may_read_secrets(access: Access | None) -> None:
    """Refuse to send secrets to anybody but an operator; ``None`` may do everything.

    Raises:
        RequestRefusedError: CLUSTER_AUTHORIZATION_FAILED.
    """
    if access is not None and not access.is_operator:
        raise RequestRefusedError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            "only operators may read secrets: leave out include_secrets",
        )


def redacted_batches(data: bytes) -> tuple[bytes, list[BatchHeader]]:
    """Return whole batches without their secrets, and the headers of those that were changed.

    Raises:
        CorruptBatchError: The bytes are not whole batches.
    """
    parts: list[bytes] = []
    changed: list[BatchHeader] = []
    places = possible_secrets(data)
    kept = 0
    for header in scan_batches(data):
        end = header.position + header.size
        is_possible = header.codec != 0 or (
            bisect_left(places, header.position) < bisect_left(places, end)
        )
        hidden = redacted_batch(data, header) if is_possible else None
        if hidden is not None:
            changed.append(header)
            parts += (data[kept : header.position], hidden)
            kept = end
    return (b"".join((*parts, data[kept:])), changed) if changed else (data, changed)
