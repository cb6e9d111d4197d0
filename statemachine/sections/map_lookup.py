"""The type of a map's ``get``: with a default, and without one."""

from __future__ import annotations

from typing import Protocol, TypeVar, overload

D = TypeVar("D")
Key = TypeVar("Key", contravariant=True)
Value = TypeVar("Value", covariant=True)


class Lookup(Protocol[Key, Value]):
    """The ``get`` of a map."""

    @overload
    def __call__(self, key: Key, /) -> Value | None: ...
    @overload
    def __call__(self, key: Key, default: D, /) -> Value | D: ...
