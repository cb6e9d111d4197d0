"""How a requested change of the voters has ended, as its caller reads it."""

from __future__ import annotations

import pytest

from quorum.core.contract.output import RequestSettled
from quorum.errors import ErrorCode


@pytest.mark.parametrize(
    ("error", "offset", "is_unknown"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, 0, True),
        (ErrorCode.REQUEST_TIMED_OUT, 7, True),
        (ErrorCode.REQUEST_TIMED_OUT, -1, False),
        (ErrorCode.NONE, 0, False),
        (ErrorCode.NONE, 7, False),
        (ErrorCode.NONE, -1, False),
    ],
)
def test_a_failed_change_that_has_an_offset_may_yet_be_committed(
    error: ErrorCode, offset: int, is_unknown: bool
) -> None:
    """Offset 0 is an offset; -1 means that no record was written."""
    assert RequestSettled(1, error, "", offset).is_outcome_unknown == is_unknown
