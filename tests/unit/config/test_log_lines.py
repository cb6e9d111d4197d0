"""The process log: one record is one line, whatever others wrote into it, and lines are bounded."""

from __future__ import annotations

import io
import json
import logging

import pytest
from grpc._cython import cygrpc

from quorate import log_limit
from quorate.log_limit import LineLimit
from quorate.logs import (
    LimitedHandler,
    _JsonLines,
    _TextLines,
    leave_out_gone_callers,
    log_event,
)
from quorate.visible_text import visible, visible_json
from quorum.core.contract.events import SelfRegistrationAnswered
from quorum.errors import ErrorCode

FORGED = (
    "evil\n2026-01-01T00:00:00.000Z CRITICAL quorate.server event=forged\r\x1b[2K\x1b]0;t\x07"
    "\x9b31m\u2028\u202e\ud800"
)


class FakeClock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def logger_of(form: logging.Formatter, limit: LineLimit) -> tuple[logging.Logger, io.StringIO]:
    stream = io.StringIO()
    handler = LimitedHandler(stream, limit)
    handler.setFormatter(form)
    logger = logging.Logger("quorum.test")  # noqa: LOG001 - of this test alone
    logger.addHandler(handler)
    return logger, stream


@pytest.mark.parametrize("form", [_TextLines(), _JsonLines()], ids=["text", "json"])
def test_a_text_of_others_stays_in_its_line(form: logging.Formatter) -> None:
    logger, stream = logger_of(form, LineLimit(FakeClock()))
    logger.warning("peer 7: %s", FORGED)
    lines = stream.getvalue().split("\n")
    assert len(lines) == 2
    assert visible_json(lines[0]) == lines[0], "no control character is left"
    assert "event=forged" in lines[0], "what was said is still there"


def test_a_trace_cannot_begin_a_line_of_the_log() -> None:
    logger, stream = logger_of(_TextLines(), LineLimit(FakeClock()))
    try:
        raise ValueError(FORGED)
    except ValueError:
        logger.exception("event=failed")
    first, *rest = stream.getvalue().rstrip("\n").split("\n")
    assert " ERROR quorum.test event=failed" in first
    assert rest
    assert all(line.startswith("    ") for line in rest)
    assert "\x1b" not in stream.getvalue()


def test_json_lines_have_the_same_content_as_text_lines() -> None:
    logger, stream = logger_of(_JsonLines(), LineLimit(FakeClock()))
    logger.info("peer %s", FORGED[:-1])
    assert json.loads(stream.getvalue())["message"] == f"peer {FORGED[:-1]}"


def test_plain_text_is_unchanged() -> None:
    assert visible("größe=1 \\ 'x' 漢字 [bold]") == "größe=1 \\ 'x' 漢字 [bold]"
    assert visible("a\tb\x1b\u202e") == r"a\tb\x1b\u202e"


def test_lines_of_one_kind_are_bounded_and_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log_limit, "LINES_PER_KIND_MAX", 3)
    clock = FakeClock()
    limit = LineLimit(clock)
    logger, stream = logger_of(_TextLines(), limit)
    for number in range(10):
        logger.info("event=request_refused sender=%d", -number)
    logger.info("event=role_changed to=leader")
    logger.debug("event=request_refused")
    lines = stream.getvalue().splitlines()
    assert len(lines) == 5, "three refusals, one change of role, and what level debug wants"
    assert limit.suppressed == 7
    clock.now = log_limit.WINDOW_S
    logger.info("event=request_refused sender=-11")
    counted, again = stream.getvalue().splitlines()[5:]
    assert "about=event=request_refused lines=7" in counted
    assert "sender=-11" in again


def test_all_kinds_together_stay_below_a_megabyte_a_minute() -> None:
    logger, stream = logger_of(_TextLines(), LineLimit(FakeClock()))
    for number in range(20_000):
        logger.warning("k%s%s reason %s", chr(97 + number % 26), chr(97 + number % 17), "x" * 500)
    for _ in range(1000):
        logger.error("event=disk_failed %s", "y" * 200)
    assert len(stream.getvalue()) < 1_000_000
    assert stream.getvalue().count("event=disk_failed") == log_limit.ERRORS_PER_KIND_MAX


def test_a_long_text_is_cut() -> None:
    logger, stream = logger_of(_TextLines(), LineLimit(FakeClock()))
    logger.warning("peer 1: %s", "z" * 100_000)
    assert len(stream.getvalue()) < 2 * log_limit.LINE_CHARACTERS_MAX
    assert "100008 characters" in stream.getvalue()


def test_a_disconnected_caller_leaves_no_grpc_traceback(caplog: pytest.LogCaptureFixture) -> None:
    """The name is gRPC's own, and private: another one in a later release must fail here."""
    leave_out_gone_callers()
    logger = logging.getLogger("grpc._cython.cygrpc")
    for error in (cygrpc.ExecuteBatchError("batch"), ValueError("other")):
        try:
            raise error
        except Exception:
            logger.exception("raised in core")
    assert [record.exc_info[0] for record in caplog.records if record.exc_info] == [ValueError]


def test_an_entry_that_an_operator_has_to_change_is_warned_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """What another attempt may bring about is not."""
    caplog.set_level(logging.INFO, "quorum.core")
    log_event(SelfRegistrationAnswered(ErrorCode.INVALID_REQUEST, "not certain who asks"))
    log_event(SelfRegistrationAnswered(ErrorCode.REQUEST_TIMED_OUT, "another change is under way"))
    log_event(SelfRegistrationAnswered(ErrorCode.NONE, ""))
    levels = [each.levelname for each in caplog.records]
    assert levels == ["WARNING", "INFO", "INFO"]
    assert 'message="not certain who asks"' in caplog.text
