"""Links that delay messages."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorum.types import NodeId
from simulation.scenario.envelopes import Envelope


@dataclass(slots=True)
class SlowLinks:
    """Delays messages on slow links. Only ``advance`` lets that time pass."""

    latency_ms: dict[tuple[NodeId, NodeId], int] = field(default_factory=dict)
    _under_way: list[tuple[int, Envelope]] = field(default_factory=list)
    """Messages in flight, each with its arrival time in ms of advanced time."""
    _passed_ms: int = 0

    @property
    def waits_ms(self) -> list[int]:
        """Remaining time of each message in ms."""
        return [due_ms - self._passed_ms for due_ms, _ in self._under_way]

    def takes(self, envelope: Envelope) -> bool:
        """Take a message if its link is slow; return whether it did."""
        latency_ms = self.latency_ms.get((envelope.sender, envelope.to))
        if latency_ms is None:
            return False
        self._under_way.append((self._passed_ms + latency_ms, envelope))
        return True

    def advance(self, ms: int) -> list[Envelope]:
        """Let time pass; return the messages that arrived, in order of arrival."""
        self._passed_ms += ms
        return self._arrived(self._passed_ms)

    def heal(self) -> list[Envelope]:
        """End all delays; return the messages in flight, the soonest first."""
        self.latency_ms.clear()
        return self._arrived(max((due_ms for due_ms, _ in self._under_way), default=0))

    def forget(self, node_id: NodeId) -> None:
        """Drop the messages from and to a node that died."""
        self._under_way = [
            (due_ms, each)
            for due_ms, each in self._under_way
            if node_id not in (each.sender, each.to)
        ]

    def _arrived(self, by_ms: int) -> list[Envelope]:
        arrived = sorted((each for each in self._under_way if each[0] <= by_ms), key=_due_ms)
        self._under_way = [each for each in self._under_way if each[0] > by_ms]
        return [envelope for _, envelope in arrived]


def _due_ms(under_way: tuple[int, Envelope]) -> int:
    return under_way[0]
