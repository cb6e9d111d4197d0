"""The process log: one line per event on standard error, as ``key=value`` text or as JSON.

Lines are rendered from core events and from the modules' own messages, which are written as
``event=name key=value``; in JSON each key is a field (``quorate.log_fields``). No payload of a
record is ever logged. One event is one line without control characters, also with text from peers
and clients; the lines of a trace are indented. ``quorate.log_limit`` bounds the lines of one kind.
"""

from __future__ import annotations

import json
import logging
import sys
import time
from datetime import UTC, datetime
from typing import Final, TextIO

from quorate.log_fields import FIELDS, Json, event_fields, fields_of
from quorate.log_limit import AGAIN, LINE_CHARACTERS_MAX, REPEATED, LineLimit
from quorate.visible_text import visible, visible_json
from quorum.core.contract import events
from quorum.errors import ErrorCode

_QUIET = frozenset(
    {
        events.FetchClassified,
        events.RecordsAppended,
        events.WatermarkMoved,
        events.ChunkReceived,
    }
)
"""Events of ordinary work: only with level ``debug``."""
_GRAVE = (
    events.DiskStalled,
    events.TruncationRefused,
    events.LeaderLost,
    events.ReplicaRegressed,
    events.ObserverStranded,
    events.VoterDisqualified,
    events.CheckpointFailed,
)
_REFUSALS: Final[dict[type, tuple[str, ...]]] = {
    events.RequestRefused: ("sender", "request", "error"),
    events.MessageIgnored: ("sender", "message", "reason"),
    events.VoteDecided: ("candidate", "pre_vote", "reason"),
    events.CampaignRefused: ("reason",),
    events.SelfRegistrationAnswered: ("error",),
    events.DigestNotComparable: ("replica",),
}
"""Events that come again and again while a peer is refused: written once a minute for each
combination of these fields. A granted vote and an accepted registration are no refusals."""
_EXPORTERS: Final = "opentelemetry."
"""Loggers of a library that tries a collector again and again, with other words each time."""
_events = logging.getLogger("quorum.core")
_limit = LineLimit(time.monotonic)


def suppressed_lines() -> int:
    """Lines that this process kept out of its log since the start."""
    return _limit.suppressed


def configure_logging(level: str, form: str) -> None:
    """Send everything of this process to standard error. Called once, by the server."""
    handler = LimitedHandler(sys.stderr, _limit)
    handler.setFormatter(_JsonLines() if form == "json" else _TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    set_level(level)
    # Its debug lines tell about its own insides, hundreds of them.
    logging.getLogger("grpc").setLevel(logging.WARNING)
    leave_out_gone_callers()


def leave_out_gone_callers() -> None:
    """No traceback of gRPC's for a caller whose deadline passed while its answer was sent.

    Any caller can cause one per call, and an operator can do nothing about it.
    """
    logging.getLogger("grpc._cython.cygrpc").addFilter(_is_not_of_a_gone_caller)


def _is_not_of_a_gone_caller(record: logging.LogRecord) -> bool:
    # gRPC has no public name for the error.
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or kind.__name__ != "ExecuteBatchError"


def set_level(level: str) -> None:
    """From now on tell what is at least as grave as ``level``."""
    logging.getLogger().setLevel(level.upper())


def log_event(event: events.Event) -> None:
    """Write one core event, at the level its kind deserves."""
    kind = type(event)
    is_grave = kind in _GRAVE or (
        # Asking again changes nothing: an operator has to.
        isinstance(event, events.SelfRegistrationAnswered)
        and event.error == ErrorCode.INVALID_REQUEST
    )
    level = logging.DEBUG if kind in _QUIET else logging.WARNING if is_grave else logging.INFO
    if _events.isEnabledFor(level):
        found = event_fields(event)
        extra: dict[str, object] = {FIELDS: found}
        if _is_refusal(event):
            names = ("event", *_REFUSALS[kind])
            extra[REPEATED] = " ".join(f"{name}={_text(found[name])}" for name in names)
        _events.log(level, "%s", _rendered(found), extra=extra)


def _is_refusal(event: events.Event) -> bool:
    match event:
        case events.VoteDecided():
            return not event.granted
        case events.SelfRegistrationAnswered():
            return event.error != ErrorCode.NONE
        case _:
            return type(event) in _REFUSALS


def render(event: events.Event) -> str:
    """``event=leader_lost leader_id=1 epoch=3``: names as in the event class."""
    return _rendered(event_fields(event))


def _rendered(found: dict[str, Json]) -> str:
    return " ".join(f"{name}={_text(value)}" for name, value in found.items())


def _text(value: Json) -> str:
    if isinstance(value, str):
        return value if value and " " not in value else json.dumps(value)
    if isinstance(value, list):
        # As the tuple that it is in the event: (1,2,3).
        return "(" + ",".join(map(str, value)) + ("," if len(value) == 1 else "") + ")"
    return str(value)


class LimitedHandler(logging.StreamHandler[TextIO]):
    """Writes the lines that ``limit`` admits, and what it suppressed when a window is over."""

    def __init__(self, stream: TextIO, limit: LineLimit) -> None:
        super().__init__(stream)
        self._line_limit = limit

    def emit(self, record: logging.LogRecord) -> None:
        """Write one record, unless too many of its kind were written."""
        for text in self._line_limit.summary():
            super().emit(
                logging.LogRecord(__name__, logging.WARNING, __file__, 0, text, None, None)
            )
        if record.name.startswith(_EXPORTERS) and record.levelno > logging.DEBUG:
            setattr(record, REPEATED, record.name)
        if self._line_limit.admits(record):
            super().emit(record)

    def format(self, record: logging.LogRecord) -> str:
        """The line; what is formatted is written."""
        line = super().format(record)
        self._line_limit.wrote(len(line))
        return line


def _shortened(text: str) -> str:
    if len(text) <= LINE_CHARACTERS_MAX:
        return text
    return f"{text[:LINE_CHARACTERS_MAX]}... ({len(text)} characters)"


class _TextLines(logging.Formatter):
    """``2026-01-31T12:00:00.000Z INFO logger message``."""

    def format(self, record: logging.LogRecord) -> str:
        message = _shortened(record.getMessage())
        again = getattr(record, AGAIN, 0)
        if again:
            message += f" again={again}"
        line = f"{_time(record)} {record.levelname} {record.name} {visible(message)}"
        if record.exc_info:
            # Indented, so that no line of an exception's text can pass for one of the log's.
            trace = _shortened(self.formatException(record.exc_info)).splitlines()
            line = "\n    ".join([line, *map(visible, trace)])
        return line


class _JsonLines(logging.Formatter):
    """The same, one JSON object a line: ``ts``, ``level``, ``logger``, and the fields of the line.

    A field whose name is one of these gets ``event_`` before it. A line without fields has a
    ``message``; ``again`` and ``trace`` are there where the text has them.
    """

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Json] = {
            "ts": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
        }
        own = {*line, "trace"}
        for name, value in fields_of(record).items():
            shown = _shortened(value) if isinstance(value, str) else value
            line[f"event_{name}" if name in own else name] = shown
        again: int = getattr(record, AGAIN, 0)
        if again:
            line["again"] = again
        if record.exc_info:
            line["trace"] = _shortened(self.formatException(record.exc_info))
        return visible_json(json.dumps(line, ensure_ascii=False))


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
