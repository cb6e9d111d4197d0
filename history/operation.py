"""What one client asked for, when, and what became of it.

Times are integers of any one unit and one clock for all clients of a history. An operation takes
effect at one moment of the closed interval [``call``, ``end``]; one whose outcome is unknown at
any moment from its call on, or never.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

Value = str | int | bool | None | list["Value"] | dict[str, "Value"]
"""What JSON can say without fractions."""


class Action(Enum):
    """What was asked for. ``arguments`` of each in brackets, optional ones with a question mark."""

    CREATE = "create"
    """A topic {partitions?, configs?}; yields {topic_id?}."""
    DELETE = "delete"
    """A topic {topic_id?}."""
    GROW = "grow"
    """A topic to so many partitions in total {partitions}."""
    ALTER = "alter"
    """Configurations, all or none {changes: [[name, set|delete|append|subtract, value], ...]}."""
    READ = "read"
    """Yields any of {exists, topic_id, partitions, configs}; ``configs`` maps each name that was
    looked at to its value, or to null where it is not set."""


class Outcome(Enum):
    """What the client was told."""

    OK = "ok"
    FAILED = "failed"
    """Refused, or never sent: it has no effect and never will. ``error`` has the code's name."""
    UNKNOWN = "unknown"


class Level(Enum):
    """How fresh a read has to be."""

    LINEARIZABLE = "linearizable"
    AT_LEAST = "at-least"
    LOCAL = "local"


@dataclass(slots=True)
class Operation:
    """One line of a history. ``key`` names the only thing it touches: ``topic:NAME`` or
    ``broker:ID``; keys are checked independently of one another.
    """

    number: int
    """Unique within the history."""
    client: str
    key: str
    action: Action
    call: int
    arguments: Mapping[str, Value] = field(default_factory=dict)
    level: Level | None = None
    """Of a read; None for everything else."""
    at_least: int = -1
    """The offset that a read of that level asked for."""
    end: int | None = None
    """When the answer came; None while there is none."""
    outcome: Outcome = Outcome.UNKNOWN
    error: str = ""
    result: Mapping[str, Value] = field(default_factory=dict)
    offset: int = -1
    """Exclusive end of the log prefix that the answer speaks of, or that ends with this write;
    -1 when it was not said."""
    epoch: int = -1
    session: str = ""
    """One life of one replica, as far as the client could tell; empty when it could not."""
    mark: str = ""
    """What the log shows for this write and for no other; empty without one."""

    @property
    def is_read(self) -> bool:
        """Whether it only looks."""
        return self.action is Action.READ

    @property
    def is_answered(self) -> bool:
        """Whether the client got an answer that says at which offset it holds."""
        return self.outcome is Outcome.OK and self.end is not None and self.offset >= 0
