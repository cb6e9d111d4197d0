"""Changes of the protos that break programs which were built with an older release.

The rules are those that buf calls FILE, as far as our protos can break them: nothing that generated
code or a stored message names may go, move to another file, or change its number, type or name.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from google.protobuf.descriptor_pb2 import (
    DescriptorProto,
    EnumDescriptorProto,
    FieldDescriptorProto,
    FileDescriptorProto,
    FileDescriptorSet,
    ServiceDescriptorProto,
)

import quorum.v1

T = TypeVar("T")


def current_files() -> FileDescriptorSet:
    """Return the descriptors of the protos as they are."""
    found = FileDescriptorSet()
    for module in pkgutil.iter_modules(quorum.v1.__path__):
        if module.name.endswith("_pb2"):
            stubs = importlib.import_module(f"quorum.v1.{module.name}")
            stubs.DESCRIPTOR.CopyToProto(found.file.add())
    return found


def breaking_changes(released: FileDescriptorSet, current: FileDescriptorSet) -> list[str]:
    """Return a sentence for each change that breaks a program of the release."""
    return [
        problem
        for old, new in _pairs(released.file, current.file)
        for problem in ([f"{old.name}: the file is gone"] if new is None else _in_file(old, new))
    ]


def _pairs(
    old: Iterable[T], new: Iterable[T], key: Callable[[Any], Any] = lambda each: each.name
) -> Iterator[tuple[T, T | None]]:
    found = {key(each): each for each in new}
    return ((each, found.get(key(each))) for each in old)


def _in_file(old: FileDescriptorProto, new: FileDescriptorProto) -> Iterator[str]:
    if old.package != new.package:
        yield f"{old.name}: package {old.package} became {new.package}"
    for message, now in _pairs(old.message_type, new.message_type):
        yield from _in_message(f"{old.name}: {message.name}", message, now)
    for enum, now_enum in _pairs(old.enum_type, new.enum_type):
        yield from _in_enum(f"{old.name}: {enum.name}", enum, now_enum)
    for service, now_service in _pairs(old.service, new.service):
        yield from _in_service(f"{old.name}: {service.name}", service, now_service)


def _in_message(place: str, old: DescriptorProto, new: DescriptorProto | None) -> Iterator[str]:
    if new is None:
        yield f"{place}: the message is gone"
        return
    for field, now in _pairs(old.field, new.field, lambda each: each.number):
        yield from _in_field(f"{place}.{field.name}", field, now, _oneof(old, field), new)
    for oneof, now_oneof in _pairs(old.oneof_decl, new.oneof_decl):
        if now_oneof is None:
            yield f"{place}.{oneof.name}: the oneof is gone"
    for nested, now_nested in _pairs(old.nested_type, new.nested_type):
        yield from _in_message(f"{place}.{nested.name}", nested, now_nested)
    for enum, now_enum in _pairs(old.enum_type, new.enum_type):
        yield from _in_enum(f"{place}.{enum.name}", enum, now_enum)
    kept = {number for each in new.reserved_range for number in range(each.start, each.end)}
    gone = {number for each in old.reserved_range for number in range(each.start, each.end)} - kept
    yield from (f"{place}: number {number} is no longer reserved" for number in sorted(gone))
    for name in sorted({*old.reserved_name} - {*new.reserved_name}):
        yield f"{place}: the name {name} is no longer reserved"


def _in_field(
    place: str,
    old: FieldDescriptorProto,
    new: FieldDescriptorProto | None,
    oneof: str,
    owner: DescriptorProto,
) -> Iterator[str]:
    if new is None:
        yield f"{place}: field {old.number} is gone"
        return
    for what in ("name", "json_name", "label", "type", "type_name", "proto3_optional"):
        before, now = getattr(old, what), getattr(new, what)
        if before != now:
            yield f"{place}: {what} of field {old.number} was {before}, is {now}"
    if oneof != (now_oneof := _oneof(owner, new)):
        yield f"{place}: was in oneof {oneof or '(none)'}, is in {now_oneof or '(none)'}"


def _oneof(owner: DescriptorProto, field: FieldDescriptorProto) -> str:
    return owner.oneof_decl[field.oneof_index].name if field.HasField("oneof_index") else ""


def _in_enum(
    place: str, old: EnumDescriptorProto, new: EnumDescriptorProto | None
) -> Iterator[str]:
    if new is None:
        yield f"{place}: the enum is gone"
        return
    for value, now in _pairs(old.value, new.value, lambda each: each.number):
        if now is None or now.name != value.name:
            yield f"{place}: {value.number} was {value.name}, is {now.name if now else 'gone'}"


def _in_service(
    place: str, old: ServiceDescriptorProto, new: ServiceDescriptorProto | None
) -> Iterator[str]:
    if new is None:
        yield f"{place}: the service is gone"
        return
    for method, now in _pairs(old.method, new.method):
        if now is None:
            yield f"{place}.{method.name}: the method is gone"
            continue
        for what in ("input_type", "output_type", "client_streaming", "server_streaming"):
            before, after = getattr(method, what), getattr(now, what)
            if before != after:
                yield f"{place}.{method.name}: {what} was {before}, is {after}"
