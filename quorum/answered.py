"""Refusals on their way out of this process's services, told to whoever listens.

Every service names a refusal here where it encodes it, and nowhere else. A running node has no
listener and pays for an empty loop; tests listen, and hold what they hear against the service's
table of answers, both ways.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from typing import NamedTuple, TypeAlias


class Service(Enum):
    """Whose table an answer is in."""

    PEERS = "peers"
    """``quorum/transport/answers.py``."""
    CLIENTS = "clients"
    """``quorate/services/answers.py``."""


class Form(Enum):
    """How a refusal reaches who asked."""

    STATUS = "status"
    """It ends the call or stream."""
    ANSWER = "answer"
    """It stands in an answer; the call or stream goes on."""
    PART = "part"
    """It stands in a good answer, of one thing among those asked for."""


class Refusal(NamedTuple):
    """One refusal, as a row of a table and as what happened."""

    service: Service
    method: str
    form: Form
    name: str
    """Of the error code; of the gRPC status where a peer's call ends, which has no code."""


Listener: TypeAlias = Callable[[Refusal], None]

_listeners: list[Listener] = []


def notify(refusal: Refusal) -> None:
    """Name a refusal that is being sent."""
    for listener in _listeners:
        listener(refusal)


@contextmanager
def listening(listener: Listener) -> Iterator[None]:
    """Call ``listener`` with every refusal meanwhile, from whichever thread sends it."""
    _listeners.append(listener)
    try:
        yield
    finally:
        _listeners.remove(listener)
