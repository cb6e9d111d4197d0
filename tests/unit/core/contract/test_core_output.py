"""What an entry point returns: an output begins empty, and a request's outcome may stay unknown."""

from __future__ import annotations

from dataclasses import fields

import pytest

from quorum.core.contract.output import Output, RequestSettled
from quorum.errors import ErrorCode


def test_an_output_begins_empty() -> None:
    output = Output()
    assert {each.name: getattr(output, each.name) for each in fields(Output)} == {
        "ticket": 0,
        "persist": [],
        "after_persist": [],
        "immediate": [],
        "progress": [],
        "events": [],
        "next_deadline_ms": None,
    }


@pytest.mark.parametrize(
    ("error", "offset", "is_unknown"),
    [
        (ErrorCode.NONE, -1, False),
        (ErrorCode.NONE, 0, False),
        (ErrorCode.NONE, 7, False),
        (ErrorCode.REQUEST_TIMED_OUT, -1, False),
        (ErrorCode.REQUEST_TIMED_OUT, 0, True),
        (ErrorCode.REQUEST_TIMED_OUT, 1, True),
    ],
)
def test_a_failed_change_that_is_in_the_log_may_still_succeed(
    error: ErrorCode, offset: int, is_unknown: bool
) -> None:
    assert RequestSettled(1, error, "", offset).is_outcome_unknown is is_unknown
