"""A method is wrapped once, however often it is called, and an unknown one is not remembered."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any

import grpc

from quorum.transport.served_methods import Behaviour, ServedMethods


class Noting:
    """A wrapper that notes what it wrapped."""

    def __init__(self, name: str, seen: list[tuple[str, str, str]]) -> None:
        self._name = name
        self._seen = seen

    def wrap(self, method: str, behaviour: Behaviour, kind: str) -> Behaviour:
        self._seen.append((self._name, method, kind))

        async def call(request: Any, context: Any) -> Any:
            return [self._name, *await behaviour(request, context)]

        return call


async def echo(request: Any, _context: Any) -> Any:
    return [request]


def asked(methods: ServedMethods, method: str) -> Any:
    return methods.service(SimpleNamespace(method=method))


def test_a_method_is_wrapped_once_with_the_first_wrapper_outermost(monkeypatch: Any) -> None:
    monkeypatch.setattr("asyncio.current_task", lambda: None)
    seen: list[tuple[str, str, str]] = []
    methods = ServedMethods(Noting("outer", seen), Noting("inner", seen))
    methods.add_generic_rpc_handlers(
        (
            grpc.method_handlers_generic_handler(
                "a.Service", {"Echo": grpc.stream_unary_rpc_method_handler(echo)}
            ),
        )
    )
    first = asked(methods, "/a.Service/Echo")
    assert asked(methods, "/a.Service/Echo") is first
    assert seen == [
        ("inner", "/a.Service/Echo", "stream_unary"),
        ("outer", "/a.Service/Echo", "stream_unary"),
    ]
    assert asyncio.run(first.stream_unary("x", None)) == ["outer", "inner", "x"]


def test_unknown_methods_are_not_remembered(monkeypatch: Any) -> None:
    """A stranger may name any number of them."""
    monkeypatch.setattr("asyncio.current_task", lambda: None)
    methods = ServedMethods()
    for number in range(10):
        assert asked(methods, f"/made.Up/Name{number}") is None
    assert not methods._methods
