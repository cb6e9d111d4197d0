"""Report refusals that this process's services send, one line of the debug log each.

Every service calls ``notify`` where it encodes a refusal, and nowhere else. Tests read these lines
and compare them with the declarations of requests and methods, both ways.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import NamedTuple

_log = logging.getLogger(__name__)


class Service(StrEnum):
    """Service whose table has the answer."""

    PEERS = "peers"
    """``quorum/transport/answers.py``."""
    CLIENTS = "clients"
    """``quorate/services/answers.py``."""


class Form(StrEnum):
    """How a refusal reaches the caller."""

    STATUS = "status"
    """It ends the call or stream."""
    ANSWER = "answer"
    """The answer is the refusal; the call or stream continues."""
    PART = "part"
    """A successful answer contains the refusal of one of the requested items."""


class Refusal(NamedTuple):
    """One refusal, as a row of a table and as an event."""

    service: Service
    method: str
    form: Form
    name: str
    """Name of the error code, or of the gRPC status if the refusal has no code."""


def notify(refusal: Refusal) -> None:
    """Log a refusal that is being sent, to debug a peer or a client."""
    _log.debug("event=refused service=%s method=%s form=%s name=%s", *refusal)
