"""Arguments of a call as a message: checked by the types of its fields, before anything is sent.

Protobuf takes a truth value for a number and a text for a list of its letters, and names no
argument in what it refuses.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Final, TypeVar

from google.protobuf.descriptor import FieldDescriptor
from google.protobuf.message import Message

from quorate.client.errors import InvalidArgumentError

Made = TypeVar("Made", bound=Message)

_PAIR: Final = 2
_NO_NAMES: Final[Mapping[str, str]] = {}
_RANGES: Final = {
    FieldDescriptor.CPPTYPE_INT32: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_ENUM: (-(1 << 31), (1 << 31) - 1),
    FieldDescriptor.CPPTYPE_INT64: (-(1 << 63), (1 << 63) - 1),
    FieldDescriptor.CPPTYPE_UINT32: (0, (1 << 32) - 1),
    FieldDescriptor.CPPTYPE_UINT64: (0, (1 << 64) - 1),
}
"""Least and greatest value of each type of whole numbers."""


def message_of(made: type[Made], names: Mapping[str, str] = _NO_NAMES, /, **arguments: Any) -> Made:
    """Return a message with these fields; None leaves out one that may be absent.

    ``names`` has the arguments that are called otherwise than their fields.

    Raises:
        InvalidArgumentError: An argument has another type than its field, or is out of its range.
    """
    fields = made.DESCRIPTOR.fields_by_name
    checked = {}
    for field_name, value in arguments.items():
        field = fields[field_name]
        if value is None and field.has_presence:
            continue
        name = names.get(field_name, field_name)
        if _is_repeated(field):
            checked[field_name] = [
                _value(field, each, f"each of {name}") for each in _listed(value, name)
            ]
        else:
            checked[field_name] = _value(field, value, name)
    return made(**checked)


def message(value: Any, expected: type[Made], name: str) -> Made:
    """Return a message that the caller has made.

    Raises:
        InvalidArgumentError: It is no message of that type.
    """
    if not isinstance(value, expected):
        raise _unexpected(name, f"a message {expected.DESCRIPTOR.name}", value)
    return value


def text(value: Any, name: str) -> str:
    """Return a text.

    Raises:
        InvalidArgumentError: It is none, or has characters that UTF-8 has not.
    """
    if not isinstance(value, str):
        raise _unexpected(name, "text", value)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError as error:
            raise InvalidArgumentError(
                f"{name} has a character that is none in UTF-8, at position {error.start}"
            ) from error
    return value


def count(value: Any, name: str, *, default: int | None = None) -> int:
    """Return a number that is not below 0, or is ``default``.

    Raises:
        InvalidArgumentError: It is no whole number, or below 0.
    """
    number = _integer(value, name, *_RANGES[FieldDescriptor.CPPTYPE_INT32])
    if number < 0 and number != default:
        words = "" if default is None else f", or {default} for the default"
        raise InvalidArgumentError(f"{name} must not be below 0{words}: {number}")
    return number


def texts_by_name(values: Any, name: str) -> dict[str, str]:
    """Return a mapping from text to text; None is an empty one.

    Raises:
        InvalidArgumentError: It is no mapping, or has something else in it.
    """
    if values is None:
        return {}
    if not isinstance(values, Mapping):
        raise _unexpected(name, "a mapping", values)
    return {
        text(key, f"each name of {name}"): text(value, f"the value of {key}")
        for key, value in values.items()
    }


def lists_of_brokers(partitions: Any, name: str) -> list[list[int]]:
    """Return the broker ids of each partition.

    Raises:
        InvalidArgumentError: It is no list of lists of numbers.
    """
    least, most = _RANGES[FieldDescriptor.CPPTYPE_INT32]
    return [
        [
            _integer(broker, f"each broker in {name}", least, most)
            for broker in _listed(brokers, f"each of {name}")
        ]
        for brokers in _listed(partitions, name)
    ]


def pairs(values: Any, name: str) -> list[tuple[Any, Any]]:
    """Return a list of pairs.

    Raises:
        InvalidArgumentError: It is none.
    """
    found = _listed(values, name)
    for each in found:
        if not isinstance(each, tuple | list) or len(each) != _PAIR:
            raise _unexpected(f"each of {name}", "a pair of type and name", each)
    return [(first, second) for first, second in found]


def _is_repeated(field: Any) -> bool:
    # Newer releases of protobuf have the first, older ones the second.
    found: bool | None = getattr(field, "is_repeated", None)
    return field.label == FieldDescriptor.LABEL_REPEATED if found is None else found


def _listed(values: Any, name: str) -> list[Any]:
    if isinstance(values, str | bytes | bytearray):
        raise InvalidArgumentError(
            f"{name} must be a list, as [{values!r}], not a single {type(values).__name__}"
        )
    if isinstance(values, Mapping | Message) or not isinstance(values, Iterable):
        raise _unexpected(name, "a list", values)
    return list(values)


def _value(field: Any, value: Any, name: str) -> Any:
    kind = field.cpp_type
    if kind == FieldDescriptor.CPPTYPE_MESSAGE:
        expected = field.message_type
        if not isinstance(value, Message) or value.DESCRIPTOR is not expected:
            raise _unexpected(name, f"a message {expected.name}", value)
        return value
    if kind == FieldDescriptor.CPPTYPE_BOOL:
        if not isinstance(value, bool):
            raise _unexpected(name, "True or False", value)
        return value
    if kind in _RANGES:
        return _integer(value, name, *_RANGES[kind])
    if field.type == FieldDescriptor.TYPE_BYTES:
        if not isinstance(value, bytes):
            raise _unexpected(name, "bytes", value)
        return value
    return text(value, name)


def _integer(value: Any, name: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not hasattr(value, "__index__"):
        raise _unexpected(name, "a whole number", value)
    number = int(value)
    if not least <= number <= most:
        raise InvalidArgumentError(f"{name} must be from {least} to {most}: {number}")
    return number


def _unexpected(name: str, expected: str, value: Any) -> InvalidArgumentError:
    found = "None" if value is None else type(value).__name__
    return InvalidArgumentError(f"{name} must be {expected}, not {found}")
