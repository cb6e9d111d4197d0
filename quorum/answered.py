"""Refusals on their way out of this process's services, one line of the debug log each.

Every service names a refusal here where it encodes it, and nowhere else. Tests read these lines
and compare them with what requests and methods declare, both ways.
"""

from __future__ import annotations

import logging
from enum import StrEnum
from typing import NamedTuple

_log = logging.getLogger(__name__)


class Service(StrEnum):
    """Whose table an answer is in."""

    PEERS = "peers"
    """``quorum/transport/answers.py``."""
    CLIENTS = "clients"
    """``quorate/services/answers.py``."""


class Form(StrEnum):
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


def notify(refusal: Refusal) -> None:
    """Write a refusal that is being sent to the log, for whoever debugs a peer or a client."""
    _log.debug("event=refused service=%s method=%s form=%s name=%s", *refusal)
