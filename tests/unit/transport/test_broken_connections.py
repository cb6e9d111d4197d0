"""Which endings of an established stream may mean that the peer's process is gone."""

from __future__ import annotations

from typing import Any

import grpc
import pytest

from quorum.transport.conversation import Conversation, Ending
from quorum.transport.grpc_stream import status_of

CODE = grpc.StatusCode
NOTHING: Any = None


def evaluated(code: grpc.StatusCode, details: str, *, sent_goodbye: bool = False) -> Ending:
    conversation = Conversation(2, NOTHING, NOTHING, on_established=NOTHING, on_message=NOTHING)
    conversation.is_established = True
    conversation._sent_goodbye = sent_goodbye
    return conversation._evaluate_status(status_of(code, details)).ending


@pytest.mark.parametrize(
    ("code", "details"),
    [
        (CODE.UNAVAILABLE, "Stream removed (Socket closed)"),
        (CODE.UNAVAILABLE, "recvmsg:Connection reset by peer"),
        # A write found it out before a read did.
        (CODE.INTERNAL, "Internal error from Core"),
    ],
)
def test_a_connection_that_broke(code: grpc.StatusCode, details: str) -> None:
    assert evaluated(code, details) is Ending.BROKEN
    assert evaluated(code, details, sent_goodbye=True) is Ending.CLOSED


@pytest.mark.parametrize(
    ("code", "details"),
    [
        (CODE.UNAVAILABLE, "GOAWAY received"),
        (CODE.UNAVAILABLE, "keepalive watchdog timeout"),
        (CODE.INTERNAL, "Exception in the handler"),
        (CODE.DEADLINE_EXCEEDED, "Socket closed"),
    ],
)
def test_a_stream_end_that_does_not_show_a_dead_process(
    code: grpc.StatusCode, details: str
) -> None:
    assert evaluated(code, details) is Ending.CLOSED
