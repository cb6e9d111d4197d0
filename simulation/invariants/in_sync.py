"""Leaders and in-sync replicas in every published image are lawful (KIP-841; KAFKA-6880)."""

from __future__ import annotations

from quorate.controller.publishing import Published
from quorum.types import NO_NODE
from simulation.invariants.invariant import Invariant
from simulation.invariants.seen import Seen
from statemachine.image import MetadataImage


class InSyncBrokers(Invariant):
    """A fenced broker leads no partition, and is in sync only as the last in-sync replica.

    A partition's leader is in sync, and every in-sync broker is a replica.
    """

    name = "in-sync-brokers"

    def on_published(self, seen: Seen, published: Published) -> None:
        before, after = published.before, published.after
        if after.topics is not before.topics or after.cluster is not before.cluster:
            self._check(seen, after)

    def _check(self, seen: Seen, image: MetadataImage) -> None:
        topics, brokers = image.topics, image.brokers
        fenced = {broker_id for broker_id in brokers if brokers[broker_id].fenced}
        for topic_id in topics.names:
            states = topics.partitions_of(topic_id)
            for index in states:
                state = states[index]
                leader, isr = state.leader, state.isr
                self.require(
                    leader not in fenced
                    and (len(isr) == 1 or fenced.isdisjoint(isr))
                    and (leader == NO_NODE or leader in isr)
                    and set(isr) <= set(state.replicas),
                    "a broker must not lead, or be in sync in, this partition",
                    node=seen.id,
                    applied=image.provenance.end_offset,
                    partition=(topics.names[topic_id], index),
                    leader=leader,
                    isr=isr,
                    replicas=state.replicas,
                    fenced=sorted(fenced),
                )
