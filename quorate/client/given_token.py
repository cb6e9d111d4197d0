"""A token that the program gives, on every call; what its function raises is kept for the error.

gRPC calls for it in threads of its own, after the call has begun and before anything is sent.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import grpc

from quorate.client.authenticator import token_metadata


class GivenToken(grpc.AuthMetadataPlugin):  # type: ignore[misc]  # grpc has no types
    """Adds the token to calls. Asked in any thread."""

    def __init__(self, token: str | Callable[[], str]) -> None:
        self._token = token
        self._lock = threading.Lock()
        self._count = 0
        self._failure: Exception | None = None

    @property
    def count(self) -> int:
        """How many calls got a token. One that got none has not been sent."""
        with self._lock:
            return self._count

    @property
    def lack(self) -> str:
        """What the program's function raised, unless it has returned since; empty if nothing."""
        failure = self._failure
        return "" if failure is None else f"the function `token` raised {failure!r}"

    def __call__(self, _context: Any, callback: Any) -> None:
        """Hand over the token for a call, or what the program's function raised. In any thread."""
        try:
            token = self._token if isinstance(self._token, str) else self._token()
        except Exception as error:  # noqa: BLE001 - the call fails with it
            self._failure = error
            callback((), error)
            return
        self._failure = None
        # Before gRPC has the token: a call that is sent has been counted.
        with self._lock:
            self._count += 1
        callback(token_metadata(token), None)
