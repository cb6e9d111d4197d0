"""Messages on their way, and which of them a command means."""

from __future__ import annotations

from dataclasses import dataclass

from quorum.core.messages.message_types import Message, Request
from quorum.types import NodeId
from simulation.scenario.render import type_name

REQUESTS, RESPONSES = "requests", "responses"


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message on its way."""

    sender: NodeId
    to: NodeId
    message: Message


@dataclass(slots=True)
class Filter:
    """Which queued messages a command means."""

    sender: NodeId | None = None
    to: NodeId | None = None
    type_name: str = ""
    only: str = ""
    """``requests``, ``responses`` or empty for both."""

    def matches(self, envelope: Envelope) -> bool:
        """Whether ``envelope`` is meant."""
        return (
            self.sender in (None, envelope.sender)
            and self.to in (None, envelope.to)
            and self.type_name in ("", type_name(envelope.message))
            and self.only in ("", direction(envelope.message))
        )


def direction(message: Message) -> str:
    """Whether it asks or answers."""
    return REQUESTS if isinstance(message, Request) else RESPONSES
