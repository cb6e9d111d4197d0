"""The process log: one record is one line, whatever others wrote into it, and lines are bounded."""

from __future__ import annotations

import ast
import io
import json
import logging
from pathlib import Path

import pytest
from grpc._cython import cygrpc

from quorate import log_limit
from quorate.log_fields import event_fields, fields_of
from quorate.log_limit import LineLimit
from quorate.logs import (
    LimitedHandler,
    _JsonLines,
    _TextLines,
    leave_out_gone_callers,
    log_event,
    render,
)
from quorate.visible_text import visible, visible_json
from quorum.core.contract.events import (
    MessageIgnored,
    RequestRefused,
    SelfRegistrationAnswered,
    VoteDecided,
    VoterSetChanged,
)
from quorum.core.contract.reasons import IgnoreReason
from quorum.errors import ErrorCode
from quorum.transport.rate_limited_log import RateLimitedLog
from quorum.types import OffsetAndEpoch, ReplicaKey

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


def test_a_repeated_refusal_is_one_line_a_minute_for_each_kind_and_peer() -> None:
    clock = FakeClock()
    limit = LineLimit(clock)
    stream = io.StringIO()
    handler = LimitedHandler(stream, limit)
    handler.setFormatter(_TextLines())
    logger = logging.getLogger("quorum.core")
    logger.addHandler(handler)
    logger.setLevel(logging.INFO)
    try:
        for _ in range(30):
            for sender in (2, 3):
                log_event(RequestRefused(sender, "Fetch", ErrorCode.FENCED_LEADER_EPOCH))
            log_event(RequestRefused(2, "Vote", ErrorCode.FENCED_LEADER_EPOCH))
            log_event(MessageIgnored(2, "Fetch", IgnoreReason.NEVER_ASKED, f"{clock.now}"))
            clock.now += 1
        lines = stream.getvalue().splitlines()
        assert len(lines) == 4, lines
        assert limit.suppressed == 0, "the log itself says how many there were"
        clock.now = log_limit.WINDOW_S
        log_event(RequestRefused(2, "Fetch", ErrorCode.FENCED_LEADER_EPOCH))
        (line,) = stream.getvalue().splitlines()[4:]
        assert line.endswith("sender=2 request=Fetch error=FENCED_LEADER_EPOCH again=29")
        # The others have ended, and their number is not lost.
        clock.now = 3 * log_limit.WINDOW_S
        logger.info("event=other")
        ended = stream.getvalue().splitlines()[5:-1]
        assert sorted(each.partition(" about=")[2] for each in ended) == [
            '"event=message_ignored sender=2 message=Fetch reason=never-asked" again=29',
            '"event=request_refused sender=2 request=Vote error=FENCED_LEADER_EPOCH" again=29',
            '"event=request_refused sender=3 request=Fetch error=FENCED_LEADER_EPOCH" again=29',
        ]
    finally:
        logger.removeHandler(handler)
        logger.setLevel(logging.NOTSET)


def test_what_is_granted_is_not_taken_for_a_repeated_refusal(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "quorum.core")
    candidate = ReplicaKey(2, bytes(16))
    log_event(VoteDecided(candidate, 3, pre_vote=True, granted=True))
    log_event(VoteDecided(candidate, 3, pre_vote=True, granted=False))
    log_event(SelfRegistrationAnswered(ErrorCode.NONE, ""))
    found = [getattr(each, log_limit.REPEATED, None) is not None for each in caplog.records]
    assert found == [False, True, False]


def test_repeated_refusals_are_remembered_in_bounded_memory() -> None:
    limit = LineLimit(clock := FakeClock())
    logger, stream = logger_of(_TextLines(), limit)
    for number in range(10_000):
        clock.now += 0.5
        logger.info("a%d", number, extra={log_limit.REPEATED: str(number)})
    assert len(limit._repetitions) <= log_limit.REPEATED_MAX
    assert stream.getvalue()


def json_line(level: int, text: str, *arguments: object, **extra: object) -> dict[str, object]:
    logger, stream = logger_of(_JsonLines(), LineLimit(FakeClock()))
    logger.log(level, text, *arguments, extra=extra or None)
    found: dict[str, object] = json.loads(stream.getvalue())
    assert found.pop("ts")
    return found


def test_a_json_line_has_a_field_for_each_key_with_its_type() -> None:
    line = json_line(
        logging.INFO,
        "event=log_opened start=%s high_watermark=%d seconds=%.1f files=%s cause=%s mode=strict",
        OffsetAndEpoch(4, 1), 7, 0.25, ["a", "b"], "two words=3",
    )  # fmt: skip
    assert line == {
        "level": "info", "logger": "quorum.test", "event": "log_opened", "start": "4/1",
        "high_watermark": 7, "seconds": 0.25, "files": ["a", "b"], "cause": "two words=3",
        "mode": "strict",
    }  # fmt: skip


def test_a_field_of_a_json_line_does_not_replace_one_of_every_line() -> None:
    line = json_line(logging.WARNING, "event=configuration_reloaded level=%s trace=%d", "debug", 1)
    assert line["level"] == "warning"
    assert (line["event_level"], line["event_trace"]) == ("debug", 1)


@pytest.mark.parametrize("text", ["peer %s answers", "event=a: %s", "event=a b=%s c", "event= %s"])
def test_a_line_of_another_form_is_a_message(text: str) -> None:
    line = json_line(logging.INFO, text, "x")
    assert line == {"level": "info", "logger": "quorum.test", "message": text.replace("%s", "x")}


def test_an_event_of_the_core_is_the_same_fields_in_json_and_in_text() -> None:
    event = VoteDecided(ReplicaKey(2, bytes(16)), 3, pre_vote=True, granted=False, detail="a b")
    fields = event_fields(event)
    assert (fields["event"], fields["epoch"], fields["granted"]) == ("vote_decided", 3, False)
    assert render(event).split(" ", 1)[0] == "event=vote_decided"
    assert 'detail="a b"' in render(event)
    assert json_line(logging.INFO, "%s", render(event), event_fields=fields) == {
        "level": "info", "logger": "quorum.test", **fields,
    }  # fmt: skip
    assert render(VoterSetChanged(1, (1, 2))) == "event=voter_set_changed offset=1 voters=(1,2)"


def test_every_module_logs_fields() -> None:
    """A line of a server that is written as one text cannot be searched by its parts."""
    root = Path(__file__).resolve().parents[3]
    texts = []
    for folder in ("quorum", "quorate/server", "quorate/services", "quorate/replica", "metrics"):
        for path in (root / folder).rglob("*.py"):
            for call in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if not isinstance(call, ast.Call) or not isinstance(call.func, ast.Attribute):
                    continue
                receiver = call.func.value
                is_logger = isinstance(receiver, ast.Name) and receiver.id.lower() in (
                    "_log", "_logger", "logger",
                )  # fmt: skip
                if is_logger and call.args and isinstance(call.args[0], ast.Constant):
                    texts.append((path.name, str(call.args[0].value)))
    assert len(texts) > 20
    assert [text for text in texts if not text[1].startswith("event=")] == []


def test_a_problem_of_a_connection_has_fields(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    problems = RateLimitedLog(logging.getLogger("quorum.transport"))
    problems.warn("peer 3", "refused", 1.0)
    problems.warn("peer 3", "refused", 2.0)
    problems.settle("peer 3", "answers again")
    assert [fields_of(each) for each in caplog.records] == [
        {"event": "connection_problem", "about": "peer 3", "problem": "refused", "again": 0},
        {"event": "connection_well", "about": "peer 3", "failures": 1},
    ]


def test_a_collector_that_is_gone_is_one_line_a_minute() -> None:
    clock = FakeClock()
    stream = io.StringIO()
    handler = LimitedHandler(stream, LineLimit(clock))
    handler.setFormatter(_JsonLines())
    logger = logging.Logger("opentelemetry.exporter.otlp.proto.http")  # noqa: LOG001 - of this test
    logger.addHandler(handler)
    for number in range(12):
        clock.now = number * 5.0
        logger.warning("Transient error, retrying in %.2fs.", 1.1 * number)
        logger.error("Failed to export spans batch due to timeout")
    clock.now = 61.0
    logger.warning("Transient error, retrying in 3.00s.")
    lines = [json.loads(each) for each in stream.getvalue().splitlines()]
    assert [(each["level"], each.get("again")) for each in lines] == [
        ("warning", None),
        ("warning", 23),
    ]
