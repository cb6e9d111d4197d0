"""Requests of every method with absurd values: they are answered, without any exception.

Unlike random bytes these are messages of the right shape: known fields at and beyond their
bounds, unknown fields, long lists. Seeded; a failure names the request.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import grpc
import pytest

from quorate.logs import leave_out_gone_callers
from quorum.v1 import metadata_pb2
from tests.support.served_node import cluster, serving
from tests.unit.services.test_calls import METHODS, NAMES, call

SEED = 20_260
MUTANTS = 40
LONG = 300
NUMBERS = {
    "int32": (-(1 << 31), -2, -1, 0, 1, 7, (1 << 31) - 1),
    "int64": (-(1 << 63), -(1 << 31), -1, 0, 1, 1 << 40, (1 << 63) - 1),
    "uint32": (0, 1, 65_536, (1 << 32) - 1),
    "uint64": (0, 1, (1 << 64) - 1),
}
RAISED = (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL)
UNKNOWN_FIELD = b"\xfa\xff\x7f\x03abc"
"""A field of a later release: it is skipped."""
EVALUATED = {
    grpc.StatusCode.OK,
    grpc.StatusCode.INVALID_ARGUMENT,
    grpc.StatusCode.FAILED_PRECONDITION,
    grpc.StatusCode.NOT_FOUND,
    grpc.StatusCode.OUT_OF_RANGE,
    grpc.StatusCode.ALREADY_EXISTS,
    grpc.StatusCode.PERMISSION_DENIED,
    grpc.StatusCode.RESOURCE_EXHAUSTED,
    grpc.StatusCode.ABORTED,
    grpc.StatusCode.DEADLINE_EXCEEDED,
    grpc.StatusCode.UNIMPLEMENTED,
}


def filled(message: Any, rng: random.Random, depth: int = 0) -> Any:
    """Most fields set to something of their type, some of it absurd."""
    for field in message.DESCRIPTOR.fields:
        if rng.random() < 0.3:
            continue
        count = rng.choice((1, 1, 2, LONG if depth == 0 else 3)) if field.is_repeated else 1
        if field.message_type is not None:
            if depth > 4:
                continue
            target = getattr(message, field.name)
            if field.message_type.GetOptions().map_entry:
                continue
            for _ in range(count):
                inner = target.add() if field.is_repeated else target
                inner.SetInParent()
                filled(inner, rng, depth + 1)
        elif field.is_repeated:
            getattr(message, field.name).extend(some(field, rng) for _ in range(count))
        else:
            setattr(message, field.name, some(field, rng))
    return message


def some(field: Any, rng: random.Random) -> Any:
    if field.type == field.TYPE_BYTES:
        return rng.choice((b"", b"x", rng.randbytes(15), rng.randbytes(16), bytes(5_000)))
    match field.cpp_type:
        case field.CPPTYPE_STRING:
            return rng.choice(
                ("", "x", "\0", "a/b", "..", "x" * 5_000, "ünï", "__cluster_metadata")
            )
        case field.CPPTYPE_BOOL:
            return rng.random() < 0.5
        case field.CPPTYPE_ENUM:
            return rng.choice((-1, 0, 1, 2, 99, (1 << 31) - 1))
        case field.CPPTYPE_INT32:
            return rng.choice(NUMBERS["int32"])
        case field.CPPTYPE_UINT32:
            return rng.choice(NUMBERS["uint32"])
        case field.CPPTYPE_UINT64:
            return rng.choice(NUMBERS["uint64"])
        case field.CPPTYPE_DOUBLE | field.CPPTYPE_FLOAT:
            return rng.choice((float("nan"), float("-inf"), -1.0, 0.0, 1e300))
        case _:
            return rng.choice(NUMBERS["int64"])


def mutant(method: Any, rng: random.Random) -> bytes:
    data: bytes = filled(method.input_type._concrete_class(), rng).SerializeToString()
    roll = rng.random()
    if roll < 0.2:
        return data + UNKNOWN_FIELD
    if roll < 0.4 and data:
        at = rng.randrange(len(data))
        return data[:at] + bytes([data[at] ^ 1 << rng.randrange(8)]) + data[at + 1 :]
    if roll < 0.5:
        return data[: rng.randrange(len(data) + 1)]
    return data


@pytest.mark.parametrize(("path", "method"), METHODS, ids=NAMES)
def test_a_mutated_request_is_evaluated(path: str, method: Any, caplog: Any) -> None:
    """No status that means "something was raised", none in the log, and no record without OK."""
    rng = random.Random(f"{SEED} {path}")
    leave_out_gone_callers()

    async def scenario() -> None:
        log, nodes = cluster(1)
        async with serving(*nodes):
            async with grpc.aio.insecure_channel(nodes[0].address) as channel:
                for number in range(MUTANTS):
                    data, end = mutant(method, rng), log.end
                    code, reason = await call(channel, path, method, data, timeout=0.25)
                    label = f"seed {SEED} mutant {number}: {code} for {data[:200]!r}"
                    # With a reason it is our own word, whatever the status.
                    assert code in EVALUATED or reason is not None, label
                    assert code not in RAISED, label
                    if code is grpc.StatusCode.INVALID_ARGUMENT:
                        assert log.end == end, label

    asyncio.run(scenario())
    assert "Traceback" not in caplog.text


READING = {
    path: method
    for path, method in METHODS
    if "read" in method.input_type.fields_by_name and not method.client_streaming
}


@pytest.mark.parametrize("path", sorted(READING))
def test_a_read_at_a_negative_offset_is_invalid(path: str) -> None:
    """Every method that reads refuses it by name, and does not take it for one long reached."""
    method = READING[path]

    async def scenario() -> None:
        _, nodes = cluster(1)
        async with serving(*nodes):
            async with grpc.aio.insecure_channel(nodes[0].address) as channel:
                for offset in (-1, -2, -(1 << 63)):
                    request = method.input_type._concrete_class()
                    request.read.level = metadata_pb2.READ_LEVEL_AT_LEAST
                    request.read.at_least_offset = offset
                    answer = await call(channel, path, method, request.SerializeToString())
                    assert answer == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST"), offset

    asyncio.run(scenario())
