"""One client operation: the request, its times, and its outcome.

Times are integers in one unit, on one clock for all clients of a history. An operation takes
effect at one moment of the closed interval [``call``, ``end``]. If its outcome is unknown, it takes
effect at any moment after its call, or never.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

Value = str | int | bool | None | list["Value"] | dict[str, "Value"]
"""JSON values without fractions."""


class Action(Enum):
    """The kind of operation. Arguments are in braces; a question mark means optional."""

    CREATE = "create"
    """A topic {partitions?, configs?}; returns {topic_id?}."""
    DELETE = "delete"
    """A topic {topic_id?}."""
    GROW = "grow"
    """Grow a topic to this total number of partitions {partitions}."""
    ALTER = "alter"
    """Configurations, atomically {changes: [[name, set|delete|append|subtract, value], ...]}."""
    READ = "read"
    """Returns any of {exists, topic_id, partitions, configs}; ``configs`` maps each name that was
    read to its value, or to null if it is not set."""


class Outcome(Enum):
    """The result as the client knows it."""

    OK = "ok"
    FAILED = "failed"
    """Refused, or never sent: it has no effect now or later. ``error`` is the code's name."""
    UNKNOWN = "unknown"


class Level(Enum):
    """The required freshness of a read."""

    LINEARIZABLE = "linearizable"
    AT_LEAST = "at-least"
    LOCAL = "local"


@dataclass(slots=True)
class Operation:
    """One operation of a history. ``key`` names the only resource it touches: ``topic:NAME`` or
    ``broker:ID``. Keys are checked independently of one another.
    """

    number: int
    """Unique within the history."""
    client: str
    key: str
    action: Action
    call: int
    arguments: Mapping[str, Value] = field(default_factory=dict)
    level: Level | None = None
    """The level of a read; None for other actions."""
    at_least: int = -1
    """The minimum offset that an at-least read requested."""
    end: int | None = None
    """Time of the response; None without one."""
    outcome: Outcome = Outcome.UNKNOWN
    error: str = ""
    result: Mapping[str, Value] = field(default_factory=dict)
    offset: int = -1
    """Exclusive end of the log prefix that the response reflects, or of the written batch;
    -1 if the response did not contain it."""
    epoch: int = -1
    session: str = ""
    """One process run of one replica, as far as the client could tell; empty if unknown."""
    mark: str = ""
    """A mark that the log shows for this write only; empty without one."""

    @property
    def is_read(self) -> bool:
        """Return whether the operation only reads."""
        return self.action is Action.READ

    @property
    def is_answered(self) -> bool:
        """Return whether the client got a response with the offset at which it holds."""
        return self.outcome is Outcome.OK and self.end is not None and self.offset >= 0
