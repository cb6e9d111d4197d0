"""What the metadata tells one broker to do: from one image to the next (380.7).

The cost of a change follows the partitions that it touched, not those of the cluster. Only a
whole state is read from its beginning to its end.

Invariants:
    1. Every command names the broker epoch in the image that it was derived from (380.2).
    2. A registration that is new gets the state of all its partitions, whatever an earlier one
       got (380.5).
    3. Commands, in their order, bring the replicas of a broker that executes all of them to
       exactly those of the image. Only a replica that was stopped for a shutdown may have an
       older state; it is not led by the broker.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from quorate.broker_agent.commands import (
    BrokerCommand,
    CommandTag,
    HostedState,
    LeaderAndIsr,
    StopReplica,
    TopicMetadata,
    TopicNumbers,
    TopicStates,
    UpdateMetadata,
)
from quorate.broker_agent.image_feed import ImageChange
from quorum.types import NodeId, Uuid
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.records import ListenerEndpoint
from statemachine.sections.cluster import BrokerRegistration
from statemachine.sections.partition_index import PartitionKey
from statemachine.sections.partitions import PartitionState


class CommandDerivation:
    """The commands to one broker. Owned by one task."""

    def __init__(self, broker_id: NodeId) -> None:
        self._broker_id = broker_id
        self._image: MetadataImage = EMPTY_IMAGE
        self._assigned: set[PartitionKey] = set()
        """The partitions of the image that have a replica on the broker."""

    def begin(self, image: MetadataImage) -> list[BrokerCommand]:
        """Begin anew with a whole state; return the commands of a new registration.

        Empty if the broker is not registered in it.
        """
        self._image = image
        self._assigned = {
            (topic_id, number)
            for topic_id in image.topics.names
            for number, state in image.topics.partitions_of(topic_id).items()
            if self._broker_id in state.replicas
        }
        broker = image.cluster.broker(self._broker_id)
        return [] if broker is None else self._full(broker)

    def follow(self, change: ImageChange) -> list[BrokerCommand]:
        """Return what follows for the broker from one change, in the order to execute it in."""
        self._image = change.after
        before, after = change.before.topics, change.after.topics
        changes = {
            key: (before.partition(*key), after.partition(*key))
            for key in sorted(change.partitions)
        }
        for key, (_, state) in changes.items():
            if state is not None and self._broker_id in state.replicas:
                self._assigned.add(key)
            else:
                self._assigned.discard(key)
        broker = change.after.cluster.broker(self._broker_id)
        if broker is None:
            return []
        known = change.before.cluster.broker(self._broker_id)
        if known is None or known.epoch != broker.epoch:
            return self._full(broker)
        return self._partial(change, known, broker, changes)

    def _full(self, broker: BrokerRegistration) -> list[BrokerCommand]:
        topics = self._image.topics
        states = {
            key: HostedState(state)
            for key in sorted(self._assigned)
            if (state := topics.partition(*key)) is not None
        }
        everything = {
            topic_id: TopicMetadata(topics.names[topic_id], topics.partitions_of(topic_id))
            for topic_id in sorted(topics.names)
        }
        tag, brokers = self._tag(broker), self._image.cluster.brokers
        return [
            self._leader_and_isr(tag, states, is_full=True),
            UpdateMetadata(tag, everything, brokers=brokers, is_full=True),
        ]

    def _partial(
        self,
        change: ImageChange,
        known: BrokerRegistration,
        broker: BrokerRegistration,
        changes: Mapping[PartitionKey, tuple[PartitionState | None, PartitionState | None]],
    ) -> list[BrokerCommand]:
        own = self._broker_id
        hosted: dict[PartitionKey, HostedState] = {}
        gone: list[PartitionKey] = []
        stopped: set[PartitionKey] = set()
        for key, (old, new) in changes.items():
            had = old is not None and own in old.replicas
            if new is None or own not in new.replicas:
                if had:
                    gone.append(key)
            elif old != new:
                if had and broker.in_controlled_shutdown and new.leader != own:
                    stopped.add(key)
                else:
                    hosted[key] = HostedState(new, is_new=not had)
        if broker.in_controlled_shutdown and not known.in_controlled_shutdown:
            stopped |= self._not_led()
        tag = self._tag(broker)
        names = _Names(change)
        commands: list[BrokerCommand] = []
        if gone:
            commands.append(StopReplica(tag, numbers_of(gone, names.of), delete_partitions=True))
        if hosted:
            commands.append(self._leader_and_isr(tag, hosted))
        if stopped:
            # Behind what is hosted: a change over many batches may have begun to host it as well.
            commands.append(
                StopReplica(tag, numbers_of(sorted(stopped), names.of), delete_partitions=False)
            )
        update = self._update(tag, change, changes)
        if update is not None:
            commands.append(update)
        return commands

    def _not_led(self) -> set[PartitionKey]:
        topics, own = self._image.topics, self._broker_id
        return {
            key
            for key in self._assigned
            if (state := topics.partition(*key)) is not None and state.leader != own
        }

    def _leader_and_isr(
        self, tag: CommandTag, states: Mapping[PartitionKey, HostedState], *, is_full: bool = False
    ) -> LeaderAndIsr:
        nested: dict[Uuid, dict[int, HostedState]] = {}
        for (topic_id, number), hosted in states.items():
            nested.setdefault(topic_id, {})[number] = hosted
        names = self._image.topics.names
        broker = self._image.cluster.brokers[self._broker_id]
        return LeaderAndIsr(
            tag,
            {each: TopicStates(names[each], partitions) for each, partitions in nested.items()},
            self._live_leaders(states.values()),
            is_full=is_full,
            cordoned_log_dirs=broker.cordoned_log_dirs or (),
        )

    def _live_leaders(
        self, states: Iterable[HostedState]
    ) -> dict[NodeId, tuple[ListenerEndpoint, ...]]:
        brokers = self._image.cluster.brokers
        return {
            leader: brokers[leader].endpoints
            for leader in sorted({hosted.state.leader for hosted in states})
            if leader in brokers
        }

    def _update(
        self,
        tag: CommandTag,
        change: ImageChange,
        changes: Mapping[PartitionKey, tuple[PartitionState | None, PartitionState | None]],
    ) -> UpdateMetadata | None:
        names = change.after.topics.names
        nested: dict[Uuid, dict[int, PartitionState]] = {}
        for (topic_id, number), (old, new) in changes.items():
            if new is not None and old != new:
                nested.setdefault(topic_id, {})[number] = new
        known = change.before.topics.names
        # One that an aborted transaction has made and taken back was never there.
        deleted = {each for each, _ in changes if each in known and each not in names}
        was, now = change.before.cluster.brokers, change.after.cluster.brokers
        brokers = None if was is now or was == now else now
        if not nested and not deleted and brokers is None:
            return None
        topics = {each: TopicMetadata(names[each], states) for each, states in nested.items()}
        return UpdateMetadata(tag, topics, tuple(sorted(deleted)), brokers)

    def _tag(self, broker: BrokerRegistration) -> CommandTag:
        at = self._image.provenance
        return CommandTag(broker.epoch, at.epoch, at.end_offset)


class _Names:
    """Names of topics in a change, of deleted ones too."""

    def __init__(self, change: ImageChange) -> None:
        self._before, self._after = change.before.topics.names, change.after.topics.names

    def of(self, topic_id: Uuid) -> str:
        return self._after.get(topic_id) or self._before.get(topic_id) or ""


def numbers_of(
    keys: Iterable[PartitionKey], name_of: Callable[[Uuid], str]
) -> dict[Uuid, TopicNumbers]:
    """Return partitions nested in their topics (380.6); ``keys`` are in ascending order."""
    nested: dict[Uuid, list[int]] = {}
    for topic_id, number in keys:
        nested.setdefault(topic_id, []).append(number)
    return {each: TopicNumbers(name_of(each), tuple(held)) for each, held in nested.items()}
