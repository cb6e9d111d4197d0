"""Convert the result of an applied command to protobuf.

The fields are ``Prepared.result``: plain values that are also in the log, so that a repeated
command gets its first answer. Fields that are absent keep protobuf's default.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from quorum.v1.commands_pb2 import CommandResult

OnError: TypeAlias = Callable[[int], None]
RESULT_KINDS = frozenset(field.name for field in CommandResult.DESCRIPTOR.fields)
"""Kinds of commands whose answer contains more than a position."""


def _ignore_error(_code: int) -> None:
    """Ignore an error code; the default of ``on_error``."""


def to_result(
    kind: str | None, fields: Mapping[str, object], on_error: OnError = _ignore_error
) -> CommandResult | None:
    """Return the result message of a command of that kind; None if it has none.

    ``on_error`` is called with every error code in it, including 0.
    """
    if kind is None or not fields or kind not in RESULT_KINDS:
        return None
    result = CommandResult()
    target = getattr(result, kind)
    target.SetInParent()
    fill(target, fields, on_error)
    return result


def fill(message: Message, fields: Mapping[str, Any], on_error: OnError = _ignore_error) -> None:
    """Copy values by name: numbers, texts and bytes unchanged, maps into messages."""
    for field in message.DESCRIPTOR.fields:
        value = fields.get(field.name)
        if value is None:
            continue
        is_message = field.type == FieldDescriptor.TYPE_MESSAGE
        if field.is_repeated:
            target = getattr(message, field.name)
            if is_message:
                for item in value:
                    fill(target.add(), item, on_error)
            else:
                target.extend(value)
        elif is_message:
            fill(getattr(message, field.name), value, on_error)
        else:
            setattr(message, field.name, value)
            if field.name == "error_code":
                on_error(value)
