"""Strangers that misuse a client's producer: its id, its epoch, its next sequence number.

Producers are not secret: every watch shows them. A stranger has the client's own principal, as all
callers have without certificates, or another one. It writes configs that no client writes, under
the client's next number or behind a gap, raises the epoch, or requests the producer anew.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING

from quorate.controller.requests import Answer, RequestContext
from quorate.replica.replica import Replica
from quorum.errors import ErrorCode
from quorum.types import NodeId
from simulation.commands import STRANGERS
from simulation.population import Population
from statemachine.commands import (
    Command,
    ConfigChange,
    IncrementalAlterConfigs,
    InitProducerId,
    ResourceType,
)

if TYPE_CHECKING:
    from simulation.workload import Client, Clients

PAUSE_US = (40_000, 250_000)
TRAVEL_US = (50, 2_000)
GAP_MAX = 3


class Strangers:
    """All strangers of a cluster."""

    def __init__(self, cluster: Population, clients: Clients, rng: random.Random) -> None:
        self._cluster = cluster
        self._clients = clients
        self._rng = rng
        self._count = 0

    def start(self) -> None:
        """Start the first step."""
        self._cluster.scheduler.after(self._rng.randint(*PAUSE_US), self._step)

    def _step(self) -> None:
        cluster, rng = self._cluster, self._rng
        if cluster.is_healed or self._clients.has_stopped():
            return
        cluster.scheduler.after(rng.randint(*PAUSE_US), self._step)
        victim = rng.choice(self._clients.all)
        if victim.producer is None:
            return
        context = RequestContext(rng.choice((victim.principal, "stranger")))
        command = self._draw(victim, victim.producer, context)
        if context.principal == victim.principal:
            victim.note_misuse(victim.producer)
        node_id = victim.target
        self._count += 1
        cluster.counts.strangers += 1
        cluster.scheduler.after(rng.randint(*TRAVEL_US), self._arrive, node_id, command, context)

    def _draw(self, victim: Client, producer: tuple[int, int], context: RequestContext) -> Command:
        """Return the command; ``context`` gets the sequence number that it uses."""
        producer_id, epoch = producer
        roll = self._rng.random()
        if roll < 0.2:
            return InitProducerId(None, producer_id, epoch)
        context.producer_id, context.producer_epoch = producer_id, epoch
        if roll < 0.35:
            context.producer_epoch += 1
            context.sequence = context.oldest_open = 0
        else:
            gap = self._rng.randint(1, GAP_MAX) if roll < 0.55 else 0
            context.sequence = victim.next_sequence + gap
            context.oldest_open = self._rng.choice((victim.oldest_open, victim.next_sequence))
        value = ConfigChange("metrics", 0, f"stranger-{self._count}")
        return IncrementalAlterConfigs(int(ResourceType.CLIENT_METRICS), STRANGERS, (value,))

    def _arrive(self, node_id: NodeId, command: Command, context: RequestContext) -> None:
        cluster = self._cluster
        key = (context.producer_id, context.producer_epoch, context.sequence)

        def answered(answer: Answer) -> None:
            if answer.code == ErrorCode.NONE and context.producer_id >= 0:
                cluster.run_observer.acknowledged(node_id, answer.offset, key, command)
                cluster.counts.strangers_served += 1

        detail = ""
        if cluster.trace.is_kept:
            detail = f"stranger {context.principal} {key} {type(command).__name__}"

        def submit(replica: Replica) -> None:
            cluster.run_observer.asked.add(key)
            replica.controller.submit(command, context, answered)

        cluster.members[node_id].serve(detail, submit)
