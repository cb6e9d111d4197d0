"""Input and output of the controller: the origin of a command, and its outcome."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TypeAlias

from quorum.errors import ErrorCode
from quorum.types import NO_NODE, NodeId

NO_PRODUCER = -1
"""Producer id, epoch and sequence of a command without an idempotent writer."""

_NO_FIELDS: Mapping[str, object] = MappingProxyType({})


@dataclass(slots=True)
class RequestContext:
    """Who asks, why, and as which idempotent writer.

    The first five travel in the headers of the command's first record
    (ADR 4). ``sequence`` counts a writer's commands from 0 per epoch; ``oldest_open`` is
    the lowest sequence whose answer the writer still waits for, so that answers below it may
    be forgotten. ``is_repeat``: another copy may be on its way, so whatever this one comes to
    takes the number for good. Not changed after ``submit``; it may be shared by commands that
    agree on it.
    """

    principal: str = ""
    client_id: str = ""
    request_id: str = ""
    reason: str = ""
    traceparent: str = ""
    producer_id: int = NO_PRODUCER
    producer_epoch: int = NO_PRODUCER
    sequence: int = NO_PRODUCER
    oldest_open: int = NO_PRODUCER
    is_repeat: bool = False


@dataclass(slots=True)
class Answer:
    """The outcome of a command.

    ``offset`` is exclusive: everything the answer rests on lies below it, is committed and is
    in the published image; ``epoch`` is the leader's that evaluated it. For an applied command
    that is the end of its own batch, for a duplicate the end of the first one. On
    ``OUTCOME_UNKNOWN`` and when nothing was evaluated, ``offset`` is -1.
    """

    code: ErrorCode
    message: str = ""
    offset: int = -1
    epoch: int = 0
    result: Mapping[str, object] = field(default_factory=lambda: _NO_FIELDS)
    leader_hint: NodeId = NO_NODE
    """The last known leader, for answers that redirect the client."""


OnAnswer: TypeAlias = Callable[[Answer], None]
"""Called exactly once per submitted command, on the controller's thread; must not raise."""
