"""Mutated protobuf messages: each has an unusual value in one field, or damaged bytes.

``sweep`` sets each field of a valid message to each unusual value, one at a time. ``some`` draws
from the same values and also damages bytes. Numbers are at the bounds of their type, around the
limits of the product, and around the cluster's present values.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from google.protobuf.descriptor import FieldDescriptor

DEPTH_MAX = 5
"""Levels of nested messages that are visited; no message of the protocol nests deeper."""
UNKNOWN_FIELD = b"\xfa\xff\x7f\x03abc"
"""An unknown field, as a later release may send it; a receiver skips it."""
_SIGNED = {FieldDescriptor.CPPTYPE_INT32: 31, FieldDescriptor.CPPTYPE_INT64: 63}
_UNSIGNED = {FieldDescriptor.CPPTYPE_UINT32: 32, FieldDescriptor.CPPTYPE_UINT64: 64}
LIMITS: dict[str, tuple[int, ...]] = {
    "port": (65_535,),
    "max_bytes": (1 << 20, 8 << 20),
    "max_wait_ms": (30_000,),
    "limit": (10_000,),
    "partition_count": (10_000,),
    "producer_epoch": (32_767,),
    "epoch": ((1 << 31) - 2,),
}
"""Bounds that the product sets, by field. Values are one below, at, and one above the bound."""
LENGTHS: dict[str, int] = {
    "cluster_id": 255, "host": 255, "name": 249, "after_name": 249, "directory_id": 16,
    "digest": 64, "config_digest": 64, "process_id": 64, "incarnation_id": 16, "topic_id": 16,
    "client_id": 1024, "reason": 1024, "request_id": 1024,
    "traceparent": 1024, "transactional_id": 255, "value": 32_767, "resource_name": 32_767,
}  # fmt: skip
"""Bounds of the lengths of strings and bytes, by field."""
COUNTS: dict[str, int] = {
    "leader_endpoints": 16, "endpoints": 16, "preferred_successors": 128, "offsets": 32,
    "partitions": 100, "topics": 100, "alterations": 1_000, "updates": 100, "listeners": 1_000,
}  # fmt: skip
"""Bounds of the lengths of lists, by field."""
MANY = 300
ODD_TEXTS = ("", "\0", "..", "a/b", "ünï\u202e", "x" * 5_000, "__cluster_metadata", "a\nb\x1b[31m")
DAMAGES_SHARE = 0.3


@dataclass(frozen=True, slots=True)
class Current:
    """The cluster's present values; mutations use values one below and one above them."""

    epoch: int
    offset: int
    ids: tuple[int, ...]

    def near(self, name: str) -> tuple[int, ...]:
        """Return present values of the cluster for a field of this name."""
        if "epoch" in name:
            return (self.epoch,)
        if "offset" in name or name == "position":
            return (self.offset,)
        return self.ids if name.endswith("id") else ()


Path = tuple[FieldDescriptor, ...]


def places(descriptor: Any, message: Any, path: Path = ()) -> Iterator[Path]:
    """Yield every field of a message and of its nested messages; of a ``oneof`` the set one."""
    for each in descriptor.fields:
        is_other = each.containing_oneof is not None and len(each.containing_oneof.fields) > 1
        if is_other and (message is None or not message.HasField(each.name)):
            continue
        yield (*path, each)
        if each.message_type is not None and len(path) < DEPTH_MAX:
            inner = None
            if message is not None and not each.is_repeated:
                inner = getattr(message, each.name)
            elif message is not None and len(getattr(message, each.name)):
                inner = getattr(message, each.name)[0]
            yield from places(each.message_type, inner, (*path, each))


def _holder(message: Any, path: Path) -> Any:
    for each in path[:-1]:
        inside = getattr(message, each.name)
        if each.is_repeated:
            message = inside[0] if len(inside) else inside.add()
        else:
            inside.SetInParent()
            message = inside
    return message


Change = Callable[[Any], None]


def _set(path: Path, value: Any) -> Change:
    def change(message: Any) -> None:
        holder, last = _holder(message, path), path[-1]
        if last.is_repeated:
            del getattr(holder, last.name)[:]
            getattr(holder, last.name).append(value)
        else:
            setattr(holder, last.name, value)

    return change


def _clear(path: Path) -> Change:
    return lambda message: _holder(message, path).ClearField(path[-1].name)


def _repeat(path: Path, count: int) -> Change:
    def change(message: Any) -> None:
        inside = getattr(_holder(message, path), path[-1].name)
        if path[-1].message_type is not None:
            item = inside[0] if len(inside) else inside.add()
            inside.extend([item] * (count - len(inside)))
        else:
            empty: Any = {FieldDescriptor.CPPTYPE_STRING: ""}.get(path[-1].cpp_type, 0)
            if path[-1].type == FieldDescriptor.TYPE_BYTES:
                empty = b""
            item = inside[0] if len(inside) else empty
            inside.extend([item] * (count - len(inside)))
        del inside[count:]

    return change


def numbers(place: FieldDescriptor, current: Current) -> tuple[int, ...]:
    """Return the values to try for a number that fit its type."""
    kind = place.cpp_type
    if kind in _SIGNED:
        low, high = -(1 << _SIGNED[kind]), (1 << _SIGNED[kind]) - 1
    elif kind in _UNSIGNED:
        low, high = 0, (1 << _UNSIGNED[kind]) - 1
    else:
        return (-1, 0, 1, 2, 3, 99, (1 << 31) - 1)
    middles = (*LIMITS.get(place.name, ()), *current.near(place.name))
    if "epoch" in place.name:
        middles += LIMITS["epoch"]
    found = {0, 1, -1, -2, low, low + 1, high - 1, high, 77}
    for middle in middles:
        found |= {middle - 1, middle, middle + 1}
    return tuple(sorted(each for each in found if low <= each <= high))


def changes(path: Path, current: Current) -> Iterator[tuple[str, Change]]:
    """Yield every change of one field, with a description."""
    last = path[-1]
    label = ".".join(each.name for each in path)
    yield f"{label} absent", _clear(path)
    if last.is_repeated:
        limit = COUNTS.get(last.name, MANY)
        for count in (1, 2, limit - 1, limit, limit + 1):
            yield f"{label} {count} times", _repeat(path, count)
    if last.message_type is not None:
        return
    if last.type == FieldDescriptor.TYPE_BYTES:
        limit = LENGTHS.get(last.name, 16)
        for size in (0, 1, limit - 1, limit, limit + 1, 5_000):
            yield f"{label} of {size} bytes", _set(path, b"\x5a" * size)
    elif last.cpp_type == FieldDescriptor.CPPTYPE_STRING:
        limit = LENGTHS.get(last.name, 255)
        for text in (*ODD_TEXTS, "y" * (limit - 1), "y" * limit, "y" * (limit + 1)):
            yield f"{label} = {text[:20]!r} ({len(text)})", _set(path, text)
    elif last.cpp_type == FieldDescriptor.CPPTYPE_BOOL:
        for value in (False, True):
            yield f"{label} = {value}", _set(path, value)
    else:
        for number in numbers(last, current):
            yield f"{label} = {number}", _set(path, number)


def changed(message: Any, change: Change) -> Any:
    """Return a copy of the message with this change."""
    copy = type(message)()
    copy.CopyFrom(message)
    change(copy)
    return copy


def sweep(message: Any, current: Current) -> Iterator[tuple[str, bytes]]:
    """Yield the message with each unusual value of each field, one at a time."""
    for path in places(message.DESCRIPTOR, message):
        for label, change in changes(path, current):
            yield label, changed(message, change).SerializeToString()


def some(message: Any, current: Current, rng: random.Random) -> tuple[str, bytes]:
    """Draw one to three changes at once; in some cases also damage the bytes."""
    paths = list(places(message.DESCRIPTOR, message))
    labels = []
    for _ in range(rng.choice((1, 1, 2, 3)) if paths else 0):
        label, change = rng.choice(list(changes(rng.choice(paths), current)))
        labels.append(label)
        message = changed(message, change)
    data: bytes = message.SerializeToString()
    if not paths or rng.random() < DAMAGES_SHARE:
        label, data = damaged(data, rng)
        labels.append(label)
    return ", ".join(labels), data


def damaged(data: bytes, rng: random.Random) -> tuple[str, bytes]:
    """Damage bytes: cut, flip, double or invent them, or append an unknown field."""
    at = rng.randrange(len(data) + 1)
    manners: Sequence[tuple[str, bytes]] = (
        (f"cut at {at}", data[:at]),
        ("with an unknown field", data + UNKNOWN_FIELD),
        ("doubled", data + data),
        ("random bytes", rng.randbytes(rng.randrange(1, 2_000))),
        ("random bytes behind it", data + rng.randbytes(8)),
    )
    if data and rng.random() < 0.3:
        flip = rng.randrange(len(data))
        mangled = data[:flip] + bytes([data[flip] ^ 1 << rng.randrange(8)]) + data[flip + 1 :]
        return f"bit of byte {flip} flipped", mangled
    return rng.choice(manners)
