"""One broker event, the same partition changes everywhere (630.17)."""

from __future__ import annotations

import random

import pytest

from quorum.batch import encode_batch, read_header
from quorum.errors import ReplayError, UnknownRecordError
from quorum.types import NO_NODE
from statemachine.codec import encode_record
from statemachine.delta import ImageDelta
from statemachine.derivation import DERIVATION_VERSION, check_derivable, derive
from statemachine.election import Election, ElectionRules, WantedChange, build_change
from statemachine.image import EMPTY_IMAGE
from statemachine.records import (
    RECOVERING,
    BrokerFencedEvent,
    BrokerShutdownEvent,
    BrokerUnfencedEvent,
    ConfigRecord,
    FeatureLevelRecord,
    PartitionChangeRecord,
    PartitionRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from statemachine.sections.cluster import DIRECTORY_LOST
from statemachine.sections.configs import topic_value

A, B = b"a" * 16, b"b" * 16
ELR = FeatureLevelRecord("eligible.leader.replicas.version", 1)


def brokers(*active, fenced=()):
    return [
        RegisterBrokerRecord(broker, broker_epoch=100 + broker, fenced=broker in fenced)
        for broker in (*active, *fenced)
    ]


def partition(index, replicas, isr=None, leader=None, **fields):
    isr = replicas if isr is None else isr
    return PartitionRecord(
        index,
        A,
        replicas,
        isr,
        leader=isr[0] if leader is None else leader,
        leader_epoch=5,
        partition_epoch=9,
        **fields,
    )


def image_of(*records):
    delta = ImageDelta(EMPTY_IMAGE)
    for record in (FeatureLevelRecord("metadata.version", 25), TopicRecord("orders", A), *records):
        delta.replay(record)
    return delta.finish()


def after(image, event):
    delta = ImageDelta(image)
    delta.replay(event)
    return delta.finish()


def fence(broker):
    return BrokerFencedEvent(broker, 100 + broker)


def test_fencing_moves_leaders_and_shrinks_isr():
    image = image_of(
        *brokers(1, 2, 3),
        partition(0, (1, 2, 3)),
        partition(1, (2, 1, 3)),
        partition(2, (2, 3)),
    )
    assert derive(image, fence(1)) == [
        PartitionChangeRecord(0, A, isr=(2, 3), leader=2),
        PartitionChangeRecord(1, A, isr=(2, 3)),
    ]
    fenced = after(image, fence(1))
    assert fenced.brokers[1].fenced
    assert fenced.topics.partition(A, 0)[:2] == ((1, 2, 3), (2, 3))
    assert fenced.topics.partition(A, 0)[6:8] == (6, 10)
    assert fenced.topics.partition(A, 1)[6:8] == (5, 10)
    assert fenced.topics.partition(A, 2) == image.topics.partition(A, 2)


def test_the_last_of_an_isr_stays_without_leading():
    image = image_of(*brokers(1, 2), partition(0, (1, 2), isr=(1,)))
    assert derive(image, fence(1)) == [PartitionChangeRecord(0, A, leader=NO_NODE)]
    fenced = after(image, fence(1))
    assert fenced.topics.partition(A, 0).isr == (1,)
    assert sorted(fenced.topics.without_leader()) == [(A, 0)]
    back = after(fenced, BrokerUnfencedEvent(1, 101))
    assert back.topics.partition(A, 0).leader == 1
    assert not back.brokers[1].fenced
    assert not back.topics.without_leader()


def test_elr_keeps_the_fenced_and_elects_it_again():
    image = image_of(
        ELR,
        *brokers(1, 2),
        ConfigRecord(2, "orders", "min.insync.replicas", "2"),
        partition(0, (1, 2), isr=(1, 2)),
    )
    once = after(image, fence(1))
    state = once.topics.partition(A, 0)
    assert (state.isr, state.elr, state.leader) == ((2,), (1,), 2)
    twice = after(once, fence(2))
    state = twice.topics.partition(A, 0)
    assert (state.isr, sorted(state.elr), state.leader) == ((), [1, 2], NO_NODE)
    assert state.last_known_elr == (2,)
    back = after(twice, BrokerUnfencedEvent(1, 101))
    state = back.topics.partition(A, 0)
    assert (state.isr, state.elr, state.leader) == ((1,), (2,), 1)
    assert (state.last_known_elr, state.leader_recovery_state) == ((), 0)


def test_an_unclean_broker_leaves_the_elr_too():
    image = image_of(
        ELR,
        *brokers(1, 2),
        ConfigRecord(4, "", "min.insync.replicas", "2"),
        partition(0, (1, 2), isr=(2,), eligible_leader_replicas=(1,)),
    )
    event = BrokerFencedEvent(1, 101, unclean=True)
    assert after(image, event).topics.partition(A, 0).elr == ()
    assert derive(image, fence(1)) == []


def test_unclean_election_only_where_the_image_allows_it():
    records = [*brokers(1, 2), partition(0, (1, 2), isr=(1,))]
    allowed = ConfigRecord(2, "orders", "unclean.leader.election.enable", "true")
    state = after(image_of(*records, allowed), fence(1)).topics.partition(A, 0)
    assert (state.isr, state.leader, state.leader_recovery_state) == ((2,), 2, RECOVERING)


def test_shutting_down_is_treated_as_leaving():
    image = image_of(*brokers(1, 2), partition(0, (1, 2)))
    gone = after(image, BrokerShutdownEvent(1, 101))
    assert gone.topics.partition(A, 0)[:2] == ((1, 2), (2,))
    assert gone.brokers[1].in_controlled_shutdown
    assert not gone.brokers[1].fenced


def test_a_replica_in_a_lost_directory_does_not_lead():
    image = image_of(
        *brokers(1, 2, 3),
        partition(0, (1, 2, 3), directories=(bytes(16), DIRECTORY_LOST, bytes(16))),
    )
    assert after(image, fence(1)).topics.partition(A, 0).leader == 3


def test_a_reassignment_completes_when_the_leaver_was_all_it_waited_for():
    image = image_of(
        *brokers(1, 2, 3),
        partition(
            0,
            (1, 2, 3),
            isr=(1, 2, 3),
            removing_replicas=(1,),
            adding_replicas=(3,),
            directories=(A, B, A),
        ),
    )
    state = after(image, fence(1)).topics.partition(A, 0)
    assert (state.replicas, state.isr, state.leader) == ((2, 3), (2, 3), 2)
    assert (state.removing, state.adding, state.directories) == ((), (), (B, A))


def test_unknown_derivations_are_not_guessed():
    event = BrokerFencedEvent(1, 101, DERIVATION_VERSION + 1)
    with pytest.raises(UnknownRecordError, match="derivation version 2"):
        check_derivable(event)
    image = image_of(*brokers(1))
    with pytest.raises(UnknownRecordError):
        derive(image, event)


@pytest.mark.parametrize("event", [BrokerFencedEvent(9, 1), BrokerFencedEvent(1, 102)])
def test_an_event_about_no_such_registration_is_corruption(event):
    with pytest.raises(ReplayError):
        derive(image_of(*brokers(1)), event)


def _random_image(rng):
    records = [
        FeatureLevelRecord("eligible.leader.replicas.version", rng.randrange(2)),
        *brokers(*range(1, 4), fenced=(4, 5)),
        ConfigRecord(2, "orders", "min.insync.replicas", str(rng.randrange(1, 4))),
        ConfigRecord(2, "orders", "unclean.leader.election.enable", rng.choice(["true", "false"])),
    ]
    for index in range(12):
        replicas = tuple(rng.sample(range(1, 6), rng.randrange(1, 5)))
        isr = tuple(rng.sample(replicas, rng.randrange(1, len(replicas) + 1)))
        rest = [broker for broker in replicas if broker not in isr]
        elr = tuple(rng.sample(rest, rng.randrange(len(rest) + 1)))
        removing = replicas[:1] if rng.random() < 0.3 else ()
        adding = replicas[-1:] if rng.random() < 0.3 and len(replicas) > 1 else ()
        leader = rng.choice([isr[0], isr[0], NO_NODE])
        records.append(
            partition(
                index,
                replicas,
                isr,
                leader,
                removing_replicas=removing,
                adding_replicas=adding,
                eligible_leader_replicas=elr or None,
                directories=rng.choice(
                    [(), tuple(rng.choice([A, DIRECTORY_LOST]) for _ in replicas)]
                ),
            )
        )
    return image_of(*records)


@pytest.mark.parametrize("seed", range(60))
def test_version_1_agrees_with_the_change_builder(seed):
    """What is derived from an event is what the leader would have written change by change."""
    rng = random.Random(seed)
    image = _random_image(rng)
    event = rng.choice(
        [
            fence(1),
            BrokerFencedEvent(2, 102, unclean=True),
            BrokerShutdownEvent(3, 103),
            BrokerUnfencedEvent(4, 104),
        ]
    )
    joins = isinstance(event, BrokerUnfencedEvent)
    unclean = isinstance(event, BrokerFencedEvent) and event.unclean
    configs, expected = image.configs, []

    def is_acceptable(broker, directory):
        registered = image.cluster.broker(broker)
        if registered is None or not registered.has_online(directory):
            return False
        if broker == event.broker_id:
            return joins
        return registered.is_active

    rules = ElectionRules(
        is_acceptable=is_acceptable,
        min_isr=int(topic_value(configs, "orders", "min.insync.replicas")),
        is_elr_enabled=image.features.level("eligible.leader.replicas.version") > 0,
    )
    allows_unclean = topic_value(configs, "orders", "unclean.leader.election.enable") == "true"
    for index, state in sorted(image.topics.partitions_of(A).items()):
        if joins:
            concerned = state.leader == NO_NODE
        else:
            concerned = event.broker_id in (*state.isr, state.leader) or (
                unclean and event.broker_id in state.elr
            )
        if not concerned:
            continue
        wanted = WantedChange(
            isr=None if joins else tuple(b for b in state.isr if b != event.broker_id),
            unclean_replicas=frozenset([event.broker_id] if unclean else []),
            election=Election.UNCLEAN if allows_unclean else Election.ONLINE,
        )
        change = build_change(state, wanted, rules, topic_id=A, partition_id=index)
        if change is not None:
            expected.append(change)
    assert derive(image, event) == expected


def _image_of_topics(rng):
    """Several topics, some with settings of their own; partitions on both sides of a word."""
    records = [
        FeatureLevelRecord("metadata.version", 25),
        FeatureLevelRecord("eligible.leader.replicas.version", rng.randrange(2)),
        *brokers(*range(1, 5), fenced=(5, 6)),
        ConfigRecord(4, "", "min.insync.replicas", "2"),
    ]
    for topic in range(6):
        topic_id = bytes([topic]) * 16
        records.append(TopicRecord(f"topic-{topic}", topic_id))
        if topic % 2:
            unclean = rng.choice(["true", "false"])
            records.append(
                ConfigRecord(2, f"topic-{topic}", "unclean.leader.election.enable", unclean)
            )
        for index in (0, 1, 2, 1023, 1024, 2050):
            replicas = tuple(rng.sample(range(1, 7), rng.randrange(1, 4)))
            isr = replicas[: rng.randrange(1, len(replicas) + 1)]
            leader = rng.choice([isr[0], isr[0], NO_NODE])
            records.append(
                PartitionRecord(
                    index, topic_id, replicas, isr, leader=leader, leader_epoch=index,
                    partition_epoch=topic,
                )
            )  # fmt: skip
    delta = ImageDelta(EMPTY_IMAGE)
    for record in records:
        delta.replay(record)
    return delta.finish()


@pytest.mark.parametrize("seed", range(40))
def test_an_event_has_the_effect_of_the_changes_derived_from_it(seed):
    """Partitions, indexes by broker and changed keys, in a delta with changes before the event."""
    rng = random.Random(seed)
    image = _image_of_topics(rng)
    event = rng.choice([fence(1), BrokerShutdownEvent(3, 103), BrokerUnfencedEvent(5, 105)])
    earlier = [PartitionChangeRecord(1, bytes([topic]) * 16, isr=(2,)) for topic in range(3)]
    by_event, by_records = ImageDelta(image), ImageDelta(image)
    for record in earlier:
        by_event.replay(record)
        by_records.replay(record)
    changes = derive(by_event, event)
    by_event.replay(event)
    for change in changes:
        by_records.replay(change)
    assert by_event.changed_keys == by_records.changed_keys | {(0, event.broker_id)}
    one, other = by_event.finish().topics, by_records.finish().topics
    assert one == other
    assert one.isr_index == other.isr_index
    assert one.leader_index == other.leader_index
    assert one.elr_index == other.elr_index


def test_the_event_stays_small_and_its_cost_follows_the_broker_not_the_cluster():
    """Fencing a broker with 30 of 3,000 partitions looks at those 30 partitions only."""
    records = [*brokers(1, 2, 3)]
    for index in range(3000):
        records.append(partition(index, (1, 2) if index % 100 == 0 else (2, 3)))
    image = image_of(*records)
    looked_at = []

    class Watched:
        def __init__(self, topics):
            self._topics = topics

        def __getattr__(self, name):
            return getattr(self._topics, name)

        def partition(self, topic_id, index):
            looked_at.append(index)
            return self._topics.partition(topic_id, index)

    class View:
        features, cluster, configs = image.features, image.cluster, image.configs
        topics = Watched(image.topics)

    assert len(derive(View(), fence(1))) == 30
    assert len(looked_at) == 30
    assert len(encode_record(fence(1))) < 20


def test_partitions_that_share_one_state_change_by_the_settings_of_their_topics():
    """The change of a shared state is found once for all topics with the same settings, not for
    all topics."""
    image = replayed_at_once(
        FeatureLevelRecord("metadata.version", 25),
        *brokers(1, 2),
        *(TopicRecord(name, name.encode() * 16) for name in "abcd"),
        *(ConfigRecord(2, name, "unclean.leader.election.enable", "true") for name in "bd"),
        *(
            PartitionRecord(index, name.encode() * 16, (1, 2), (1,), leader=1)
            for name in "abcd"
            for index in range(3)
        ),
    )
    states = {id(each) for one in image.topics.partitions.values() for each in one.values()}
    assert len(states) == 1
    delta = ImageDelta(image)
    delta.replay(fence(1))
    after = delta.finish().topics
    leaders = {
        name: [after.partition(name.encode() * 16, index).leader for index in range(3)]
        for name in "abcd"
    }
    assert leaders == {"a": [NO_NODE] * 3, "b": [2] * 3, "c": [NO_NODE] * 3, "d": [2] * 3}
    assert list(after.led_by(2)) == [(b * 16, index) for b in (b"b", b"d") for index in range(3)]


def replayed_at_once(*records):
    """Replay records as one batch of a log, so that partitions share their states."""
    delta = ImageDelta(EMPTY_IMAGE)
    values = [encode_record(each) for each in records]
    batch = encode_batch(values, base_offset=0, epoch=1, timestamp=1)
    delta.replay_batch(read_header(batch), list(records))
    return delta.finish()
