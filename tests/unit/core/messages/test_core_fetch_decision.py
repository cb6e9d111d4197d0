"""What the answer to a Fetch has of the core's decision, and what of the records read for it."""

from __future__ import annotations

from typing import Any

import pytest

from quorum.core.messages.fetch_messages import (
    Diverging,
    FetchDecision,
    FetchResponse,
    OfferSnapshot,
    ServeRecords,
)
from quorum.core.messages.read_messages import ReadRound
from quorum.errors import ErrorCode
from quorum.types import Endpoint, OffsetAndEpoch, SnapshotId
from tests.support.core_disk import key

POINT = OffsetAndEpoch(5, 3)
SNAPSHOT = SnapshotId(7, 4)
HERE = (Endpoint("CONTROLLER", "leader", 9),)


@pytest.mark.parametrize(
    ("content", "records", "fields"),
    [
        (None, b"", {}),
        (ServeRecords(5, 100, 9), b"batch", {"records": b"batch"}),
        (Diverging(POINT), b"", {"diverging": POINT}),
        (OfferSnapshot(SNAPSHOT), b"", {"snapshot_id": SNAPSHOT}),
    ],
)
def test_an_answer_has_records_a_divergence_or_a_snapshot(
    content: Any, records: bytes, fields: dict[str, Any]
) -> None:
    decision = FetchDecision(
        70, content, 2, 4, 6, 1, ReadRound(4, 8), HERE,
        leader_age_ms=11, path=(key(9),), contact_age_ms=12,
    )  # fmt: skip
    assert decision.response(records) == FetchResponse(
        70, ErrorCode.NONE, 2, 4, 6, 1, read_round=ReadRound(4, 8), leader_endpoints=HERE,
        leader_age_ms=11, path=(key(9),), contact_age_ms=12, **fields,
    )  # fmt: skip
