"""Messages in flight, and a filter that selects some of them."""

from __future__ import annotations

from dataclasses import dataclass

from quorum.core.messages.message_types import Message, Request
from quorum.types import NodeId
from simulation.scenario.render import type_name

REQUESTS, RESPONSES = "requests", "responses"


@dataclass(frozen=True, slots=True)
class Envelope:
    """A message in flight."""

    sender: NodeId
    to: NodeId
    message: Message


@dataclass(slots=True)
class Filter:
    """Selects queued messages; None or an empty text matches all."""

    sender: NodeId | None = None
    to: NodeId | None = None
    type_name: str = ""
    only: str = ""
    """``requests``, ``responses`` or empty for both."""

    def matches(self, envelope: Envelope) -> bool:
        """Return whether the filter selects ``envelope``."""
        return (
            self.sender in (None, envelope.sender)
            and self.to in (None, envelope.to)
            and self.type_name in ("", type_name(envelope.message))
            and self.only in ("", direction(envelope.message))
        )


def direction(message: Message) -> str:
    """Return ``requests`` or ``responses``."""
    return REQUESTS if isinstance(message, Request) else RESPONSES
