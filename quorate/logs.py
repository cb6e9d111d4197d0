"""The process log: one line per event on standard error, as ``key=value`` text or as JSON.

Lines are rendered from core events and from the modules' own messages, which are written as
``event=name key=value``. No payload of a record is ever logged.
"""

from __future__ import annotations

import json
import logging
import sys
from dataclasses import fields
from datetime import UTC, datetime
from enum import Enum
from re import compile as pattern

from quorum.core import events
from quorum.types import Endpoint, OffsetAndEpoch, ReplicaKey, uuid_to_text

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
    events.VotingBarred,
    events.CheckpointFailed,
)
_WORD = pattern(r"(?<=[a-z])(?=[A-Z])")
_events = logging.getLogger("quorum.core")


def configure_logging(level: str, form: str) -> None:
    """Send everything of this process to standard error. Called once, by the server."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_JsonLines() if form == "json" else _TextLines())
    root = logging.getLogger()
    root.handlers[:] = [handler]
    set_level(level)
    # Its debug lines tell about its own insides, hundreds of them.
    logging.getLogger("grpc").setLevel(logging.WARNING)


def set_level(level: str) -> None:
    """From now on tell what is at least as grave as ``level``."""
    logging.getLogger().setLevel(level.upper())


def log_event(event: events.Event) -> None:
    """Write one core event, at the level its kind deserves."""
    kind = type(event)
    level = logging.DEBUG if kind in _QUIET else logging.WARNING if kind in _GRAVE else logging.INFO
    if _events.isEnabledFor(level):
        _events.log(level, "%s", render(event))


def render(event: events.Event) -> str:
    """``event=leader_lost leader_id=1 epoch=3``: names as in the event class."""
    name = _WORD.sub("_", type(event).__name__).lower()
    parts = [f"{each.name}={_text(getattr(event, each.name))}" for each in fields(event)]
    return " ".join([f"event={name}", *parts])


def _text(value: object) -> str:
    match value:
        case ReplicaKey():
            return f"{value.id}/{uuid_to_text(value.directory_id)}"
        case OffsetAndEpoch() | Endpoint():
            return str(value)
        case Enum():
            return value.name
        case str():
            return value if value and " " not in value else json.dumps(value)
        case _:
            return str(value).replace(" ", "")


class _TextLines(logging.Formatter):
    """``2026-01-31T12:00:00.000Z INFO logger message``."""

    def format(self, record: logging.LogRecord) -> str:
        line = f"{_time(record)} {record.levelname} {record.name} {record.getMessage()}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


class _JsonLines(logging.Formatter):
    """The same, one JSON object a line; ``key=value`` pairs stay in ``message``."""

    def format(self, record: logging.LogRecord) -> str:
        fields_ = {
            "ts": _time(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.exc_info:
            fields_["trace"] = self.formatException(record.exc_info)
        return json.dumps(fields_, ensure_ascii=False)


def _time(record: logging.LogRecord) -> str:
    moment = datetime.fromtimestamp(record.created, UTC)
    return moment.isoformat(timespec="milliseconds").replace("+00:00", "Z")
