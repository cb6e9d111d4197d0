"""What a broker program gives to an agent: callbacks for commands, and what it hosts."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple, Protocol, TypeAlias

from quorate.broker_agent.commands import BrokerCommand, LeaderAndIsr, StopReplica, UpdateMetadata
from quorum.errors import ErrorCode
from quorum.types import Uuid


class HostedReplica(NamedTuple):
    """A replica on the broker's disks."""

    topic_id: Uuid
    partition: int
    topic_name: str
    directory_id: Uuid
    """The log directory that holds it."""


class AgentState(Enum):
    """What the newest applied metadata says of the broker."""

    CATCHING_UP = "catching-up"
    """The registration of this process is not in the metadata that it has applied."""
    FENCED = "fenced"
    ACTIVE = "active"
    SHUTTING_DOWN = "shutting-down"
    UNREGISTERED = "unregistered"
    """An operator has removed the registration; the agent registers again."""
    SUPERSEDED = "superseded"
    """Another process has taken the broker id over; the agent ends."""


@dataclass(frozen=True, slots=True)
class Registered:
    """This process is registered under a broker epoch, for the first time or again."""

    broker_epoch: int


@dataclass(frozen=True, slots=True)
class StateChanged:
    """The metadata says something else of the broker than before."""

    state: AgentState
    metadata_offset: int
    """Last offset applied, inclusive."""


@dataclass(frozen=True, slots=True)
class Refused:
    """A command was not executed: it was decided for another registration (380.3)."""

    command: BrokerCommand
    code: ErrorCode


@dataclass(frozen=True, slots=True)
class HistoryLost:
    """The log is another one than the agent has followed: everything is compared anew."""

    cause: str


@dataclass(frozen=True, slots=True)
class Waiting:
    """Something that the agent does will be tried again."""

    cause: str


AgentEvent: TypeAlias = Registered | StateChanged | Refused | HistoryLost | Waiting


class CommandHandler(Protocol):
    """Executes commands, one at a time and in their order, on the agent's event loop.

    The offset that heartbeats report rises only when a command's method has returned. An exception
    ends the agent.
    """

    def hosted(self) -> Iterable[HostedReplica]:
        """Return what is on the broker's disks now, whatever the metadata says."""

    def directory_of(self, topic_id: Uuid, partition: int) -> Uuid | None:
        """Return the log directory that holds a replica; None for one that is not hosted."""

    async def stop_replica(self, command: StopReplica) -> None:
        """Stop to fetch; delete the logs if ``delete_partitions`` says so."""

    async def leader_and_isr(self, command: LeaderAndIsr) -> None:
        """Host these partitions, and lead or follow them as their states say."""

    async def update_metadata(self, command: UpdateMetadata) -> None:
        """Note what to tell clients about the cluster."""

    def report(self, event: AgentEvent) -> None:
        """Take notice of an event."""
