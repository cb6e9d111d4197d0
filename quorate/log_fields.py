"""The fields of a log line, with their types: from an event, or from ``key=%s`` of its template.

Modules write ``_log.info("event=name key=%s count=%d", key, count)``. The template says which
argument is which field, so a text with spaces stays one value and a number stays a number. A line
without this form has one field, ``message``.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from dataclasses import fields
from enum import Enum
from typing import Final

from quorum.core.contract import events
from quorum.types import Endpoint, OffsetAndEpoch, ReplicaKey, uuid_to_text

FIELDS: Final = "event_fields"
"""Attribute of a log record: its fields, where the module gives them itself (``extra``)."""
_PAIR: Final = re.compile(r"(\w+)=(%[-+ #0-9.]*[a-z]|[^\s%]+)(?:\s+|$)")
_EVENT_WORD: Final = re.compile(r"(?<=[a-z])(?=[A-Z])")
Json = str | int | float | bool | None | list["Json"]


def event_fields(event: events.Event) -> dict[str, Json]:
    """Return an event's name and its fields: names as in the event class."""
    named = {each.name: field_value(getattr(event, each.name)) for each in fields(event)}
    return {"event": event_name(event), **named}


def event_name(event: events.Event) -> str:
    """Return ``leader_lost`` for ``LeaderLost``."""
    return _EVENT_WORD.sub("_", type(event).__name__).lower()


def fields_of(record: logging.LogRecord) -> dict[str, Json]:
    """Return the fields of a log record."""
    given: Mapping[str, object] | None = getattr(record, FIELDS, None)
    if given is not None:
        return {name: field_value(value) for name, value in given.items()}
    return _from_template(record) or {"message": record.getMessage()}


def _from_template(record: logging.LogRecord) -> dict[str, Json] | None:
    """Return the fields of ``key=%s key=word``; None for a template that has anything else."""
    if not isinstance(record.msg, str) or isinstance(record.args, Mapping):
        return None
    arguments = list(record.args or ())
    found: dict[str, Json] = {}
    at = 0
    while at < len(record.msg):
        pair = _PAIR.match(record.msg, at)
        if pair is None or (pair[2][0] == "%" and not arguments):
            return None
        found[pair[1]] = field_value(arguments.pop(0)) if pair[2][0] == "%" else pair[2]
        at = pair.end()
    return None if arguments else found


def field_value(value: object) -> Json:
    """Return a value as JSON has it: numbers and flags stay, everything else is text or a list."""
    match value:
        case None | bool():
            return value
        case str():
            return str(value)
        case Enum():
            return value.name
        case int() | float():
            return value
        case ReplicaKey():
            return f"{value.id}/{uuid_to_text(value.directory_id)}"
        case OffsetAndEpoch() | Endpoint():
            return str(value)
        case list() | tuple():
            return [field_value(each) for each in value]
        case bytes():
            return value.hex()
        case _:
            return str(value)
