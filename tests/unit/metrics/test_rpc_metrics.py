"""Calls are counted with their status, streams once, and unknown methods not at all."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import grpc
import pytest
from grpc import aio
from prometheus_client import CollectorRegistry

from metrics.families import Families
from metrics.observer import Observer
from quorate.server.rpc_metrics import RpcCounter
from quorum.transport.served_methods import ServedMethods

SERVICE = "test.Service"


async def echo(request: bytes, _context: Any) -> bytes:
    return request


async def refuse(_request: bytes, context: Any) -> bytes:
    await context.abort(grpc.StatusCode.NOT_FOUND, "nothing here")
    return b""


async def crash(_request: bytes, _context: Any) -> bytes:
    raise ValueError("boom")


async def stream(_request: bytes, context: Any) -> None:
    for _ in range(3):
        await context.write(b"x")


def handlers() -> grpc.GenericRpcHandler:
    unary = grpc.unary_unary_rpc_method_handler
    return grpc.method_handlers_generic_handler(
        SERVICE,
        {
            "Echo": unary(echo),
            "Refuse": unary(refuse),
            "Crash": unary(crash),
            "Stream": grpc.unary_stream_rpc_method_handler(stream),
        },
    )


def counted(work: Callable[[aio.Channel], Awaitable[None]]) -> CollectorRegistry:
    registry = CollectorRegistry()

    async def run() -> None:
        methods = ServedMethods(RpcCounter(Observer(Families(registry))))
        methods.add_generic_rpc_handlers((handlers(),))
        server = aio.server()
        server.add_generic_rpc_handlers((methods,))
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            async with aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                await work(channel)
        finally:
            await server.stop(None)

    asyncio.run(run())
    return registry


def value(registry: CollectorRegistry, name: str, method: str, **labels: str) -> float | None:
    labels |= {"service": SERVICE, "method": method}
    return registry.get_sample_value(f"quorate_rpc_{name}", labels)


@pytest.mark.parametrize(
    ("method", "code"), [("Echo", "OK"), ("Refuse", "NOT_FOUND"), ("Crash", "UNKNOWN")]
)
def test_unary_calls(method: str, code: str) -> None:
    async def work(channel: aio.Channel) -> None:
        call = channel.unary_unary(f"/{SERVICE}/{method}")(b"a")
        assert (await call.code()).name == code

    registry = counted(work)
    assert value(registry, "started_total", method) == 1
    assert value(registry, "handled_total", method, code=code) == 1
    assert value(registry, "handling_seconds_count", method) == 1


def test_a_stream_is_one_call_without_a_length() -> None:
    async def work(channel: aio.Channel) -> None:
        seen = [message async for message in channel.unary_stream(f"/{SERVICE}/Stream")(b"")]
        assert seen == [b"x"] * 3

    registry = counted(work)
    assert value(registry, "handled_total", "Stream", code="OK") == 1
    assert value(registry, "handling_seconds_count", "Stream") is None


def test_unknown_methods_make_no_series() -> None:
    async def work(channel: aio.Channel) -> None:
        with pytest.raises(aio.AioRpcError):
            await channel.unary_unary("/made.Up/Name")(b"")

    registry = counted(work)
    assert (
        registry.get_sample_value(
            "quorate_rpc_started_total", {"service": "made.Up", "method": "Name"}
        )
        is None
    )
