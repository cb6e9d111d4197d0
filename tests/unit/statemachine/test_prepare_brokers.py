"""Registration, heartbeats and departure of brokers, in both codecs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.errors import CommandError, ErrorCode
from statemachine.commands import (
    BrokerHeartbeat,
    FeatureRange,
    Listener,
    RegisterBroker,
    UnregisterBroker,
)
from statemachine.prepare import prepare
from statemachine.prepare.heartbeats import BrokerState, next_state
from statemachine.records import (
    BrokerFencedEvent,
    BrokerRegistrationChangeRecord,
    BrokerShutdownEvent,
    BrokerUnfencedEvent,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    UnregisterBrokerRecord,
)
from tests.support.image_builder import (
    CLUSTER_ID,
    END_OFFSET,
    after,
    directory,
    evaluation,
    fenced,
    incarnation,
    registration,
    replayed,
    shutting_down,
    small_cluster,
    topic_id,
)

FEATURES = (FeatureRange("metadata.version", 7, 33),)


def register(broker_id=4, *, number=None, **fields):
    command = RegisterBroker(
        broker_id=broker_id,
        cluster_id=CLUSTER_ID,
        incarnation_id=incarnation(100 + broker_id if number is None else number),
        listeners=(Listener("PLAINTEXT", "host", 9092),),
        features=FEATURES,
        rack="r",
        log_dirs=(directory(broker_id),),
    )
    return replace(command, **fields)


def refusal(image, command, context=None):
    with pytest.raises(CommandError) as caught:
        prepare(image, command, context or evaluation())
    return caught.value.code


def test_a_new_broker_is_born_fenced_with_the_next_offset_as_epoch():
    prepared = prepare(small_cluster(), register(), evaluation())
    (record,) = prepared.records
    assert type(record) is RegisterBrokerRecord
    assert (record.broker_epoch, record.fenced) == (END_OFFSET, True)
    assert prepared.result == {"broker_epoch": END_OFFSET}


def test_an_epoch_is_above_every_epoch_ever_seen():
    image = small_cluster(registration(9, broker_epoch=5_000), UnregisterBrokerRecord(9, 5_000))
    assert prepare(image, register(), evaluation()).result == {"broker_epoch": 5_001}


@pytest.mark.parametrize(
    ("command", "code"),
    [
        (register(cluster_id="other"), ErrorCode.INCONSISTENT_CLUSTER_ID),
        (register(is_migrating_zk_broker=True), ErrorCode.BROKER_ID_NOT_REGISTERED),
        (register(log_dirs=()), ErrorCode.INVALID_REGISTRATION),
        (register(log_dirs=(bytes(15) + b"\x02",)), ErrorCode.INVALID_REGISTRATION),
        (register(log_dirs=(directory(4), directory(4))), ErrorCode.INVALID_REGISTRATION),
        (register(log_dirs=(directory(1),)), ErrorCode.INVALID_REGISTRATION),
        (register(features=()), ErrorCode.INVALID_REGISTRATION),
        (register(features=FEATURES * 2), ErrorCode.INVALID_REGISTRATION),
        (
            register(features=(FeatureRange("metadata.version", 7, 32),)),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        (
            register(features=(*FEATURES, FeatureRange("group.version", 1, 1))),
            ErrorCode.UNSUPPORTED_VERSION,
        ),
        (replace(register(), broker_id=-1), ErrorCode.INVALID_REGISTRATION),
        (register(incarnation_id=b"short"), ErrorCode.INVALID_REGISTRATION),
        (register(rack="x" * 300), ErrorCode.INVALID_REGISTRATION),
        (register(listeners=(Listener("A", "h", 70_000),)), ErrorCode.INVALID_REGISTRATION),
        (register(listeners=(Listener("A", "h", 1),) * 2), ErrorCode.INVALID_REGISTRATION),
    ],
)
def test_registration_refusals(command, code):
    assert refusal(small_cluster(), command) is code


def test_checks_come_in_their_order():
    context = evaluation()
    context.sessions.touch(1, 11, 0)
    command = register(1, log_dirs=(), features=(), is_migrating_zk_broker=True)
    image = small_cluster()
    assert refusal(image, replace(command, cluster_id="x"), context) is (
        ErrorCode.INCONSISTENT_CLUSTER_ID
    )
    assert refusal(image, command, context) is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    context.now_ms = 9_000
    assert refusal(image, command, context) is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_a_finalised_feature_must_be_offered():
    image = small_cluster(elr=True)
    assert refusal(image, register()) is ErrorCode.UNSUPPORTED_VERSION


def test_a_bounced_broker_fails_first_and_starts_then():
    image = small_cluster()
    records = prepare(image, register(1), evaluation()).records
    assert records[0] == BrokerFencedEvent(1, 11)
    assert records[1].broker_epoch == END_OFFSET
    changed = after(image, records)
    partition = changed.topics.partition(topic_id(1), 0)
    assert (partition.leader, partition.isr) == (2, (2, 3))
    assert changed.cluster.broker(1).fenced


def test_a_bounced_broker_in_kafkas_codec_is_cleaned_up_record_by_record():
    records = prepare(small_cluster(), register(1), evaluation(native=False)).records
    assert [type(record) for record in records] == [PartitionChangeRecord] * 3 + [
        RegisterBrokerRecord
    ]
    assert (records[0].leader, records[0].isr) == (2, (2, 3))


def test_an_unclean_bounce_also_leaves_every_elr():
    image = small_cluster(
        PartitionChangeRecord(0, topic_id(1), isr=(2,), leader=2, eligible_leader_replicas=(1,)),
        fenced(1),
        elr=True,
    )
    offered = (*FEATURES, FeatureRange("eligible.leader.replicas.version", 0, 1))
    clean = register(1, features=offered, previous_broker_epoch=11)
    assert len(prepare(image, clean, evaluation()).records) == 1
    records = prepare(image, replace(clean, previous_broker_epoch=-1), evaluation()).records
    assert records[0] == BrokerFencedEvent(1, 11, unclean=True)
    assert after(image, records).topics.partition(topic_id(1), 0).elr == ()


def test_the_same_incarnation_keeps_its_epoch_and_may_amend():
    context = evaluation()
    context.sessions.touch(1, 11, 0)
    same = RegisterBroker(
        1, CLUSTER_ID, incarnation(1), features=FEATURES, rack="r1", log_dirs=(directory(1),)
    )
    prepared = prepare(small_cluster(), same, context)
    assert prepared.records == []
    assert prepared.result == {"broker_epoch": 11}
    (record,) = prepare(small_cluster(), replace(same, rack="r9"), context).records
    assert (record.broker_epoch, record.fenced, record.rack) == (11, False, "r9")


@pytest.mark.parametrize("native", [True, False])
def test_unregistering_leaves_nothing_behind(native):
    image = small_cluster()
    records = prepare(image, UnregisterBroker(1), evaluation(native=native)).records
    assert records[-1] == UnregisterBrokerRecord(1, 11)
    changed = after(image, records)
    assert changed.cluster.broker(1) is None
    assert not changed.topics.in_isr_of(1)
    assert refusal(image, UnregisterBroker(9)) is ErrorCode.BROKER_ID_NOT_REGISTERED


# ---------------------------------------------------------------------- heartbeats


def heartbeat(broker_id=1, epoch=None, offset=END_OFFSET, **wants):
    return BrokerHeartbeat(broker_id, 10 + broker_id if epoch is None else epoch, offset, **wants)


@pytest.mark.parametrize(
    ("current", "fence", "shutdown", "caught_up", "leads", "known", "expected"),
    [
        ("FENCED", False, True, True, False, False, "SHUTDOWN_NOW"),
        ("FENCED", True, True, True, False, False, "SHUTDOWN_NOW"),
        ("FENCED", False, False, True, False, False, "UNFENCED"),
        ("FENCED", False, False, False, False, False, "FENCED"),
        ("FENCED", True, False, True, False, False, "FENCED"),
        ("UNFENCED", True, True, True, True, False, "SHUTDOWN_NOW"),
        ("UNFENCED", True, False, True, True, False, "FENCED"),
        ("UNFENCED", False, True, True, True, False, "CONTROLLED_SHUTDOWN"),
        ("UNFENCED", False, True, True, False, False, "SHUTDOWN_NOW"),
        ("UNFENCED", False, False, True, True, False, "UNFENCED"),
        ("CONTROLLED_SHUTDOWN", False, False, True, True, True, "CONTROLLED_SHUTDOWN"),
        ("CONTROLLED_SHUTDOWN", False, True, True, False, True, "SHUTDOWN_NOW"),
        ("CONTROLLED_SHUTDOWN", False, False, True, False, False, "CONTROLLED_SHUTDOWN"),
    ],
)
def test_the_table_of_heartbeats(current, fence, shutdown, caught_up, leads, known, expected):
    command = heartbeat(want_fence=fence, want_shutdown=shutdown)
    state = next_state(
        BrokerState[current],
        command,
        is_caught_up=caught_up,
        leads_any=leads,
        moves_are_known=known,
    )
    assert state is BrokerState[expected]


@pytest.mark.parametrize("command", [heartbeat(9), heartbeat(1, epoch=10), heartbeat(1, epoch=12)])
def test_another_incarnation_is_stale(command):
    assert refusal(small_cluster(), command) is ErrorCode.STALE_BROKER_EPOCH


def test_a_quiet_heartbeat_yields_nothing_but_its_answer():
    prepared = prepare(small_cluster(), heartbeat(), evaluation())
    assert prepared.records == []
    assert prepared.result == {
        "is_caught_up": True,
        "is_fenced": False,
        "should_shut_down": False,
    }


def test_unfencing_gives_leaderless_partitions_a_leader():
    image = small_cluster(
        fenced(1),
        fenced(2),
        PartitionChangeRecord(0, topic_id(1), isr=(1,), leader=-1),
        PartitionChangeRecord(1, topic_id(1), isr=(2,), leader=-1),
    )
    native = prepare(image, heartbeat(), evaluation())
    assert native.records == [BrokerUnfencedEvent(1, 11)]
    kafka = prepare(image, heartbeat(), evaluation(native=False)).records
    assert kafka == [
        BrokerRegistrationChangeRecord(1, 11, fenced=-1),
        PartitionChangeRecord(0, topic_id(1), leader=1),
    ]
    assert after(image, native.records).topics == after(image, kafka).topics


def test_a_broker_behind_its_registration_stays_fenced():
    image = small_cluster(fenced(1))
    prepared = prepare(image, heartbeat(offset=10), evaluation())
    assert prepared.records == []
    assert prepared.result["is_caught_up"] is False
    assert prepared.result["is_fenced"] is True


def test_fencing_on_request_in_both_codecs_comes_to_the_same():
    image = small_cluster()
    native = prepare(image, heartbeat(want_fence=True), evaluation()).records
    kafka = prepare(image, heartbeat(want_fence=True), evaluation(native=False)).records
    assert native == [BrokerFencedEvent(1, 11)]
    assert kafka[-1] == BrokerRegistrationChangeRecord(1, 11, fenced=1)
    assert after(image, native).has_content_of(after(image, kafka))


def test_a_controlled_shutdown_waits_until_others_know():
    image = small_cluster()
    context = evaluation()
    for broker in (2, 3):
        context.sessions.touch(broker, 10 + broker, 0).metadata_offset = END_OFFSET - 5
    prepared = prepare(image, heartbeat(want_shutdown=True), context)
    assert prepared.records == [BrokerShutdownEvent(1, 11)]
    assert prepared.result["should_shut_down"] is False
    assert prepared.session.shutdown_offset == END_OFFSET
    context.sessions.update(prepared.session, 0)
    image = after(image, prepared.records)
    assert not image.topics.leads_any(1)
    context.next_offset = END_OFFSET + 1
    prepared = prepare(image, heartbeat(want_shutdown=True), context)
    assert (prepared.records, prepared.result["should_shut_down"]) == ([], False)
    for broker in (2, 3):
        context.sessions.touch(broker, 10 + broker, 0).metadata_offset = END_OFFSET
    prepared = prepare(image, heartbeat(want_shutdown=True), context)
    assert prepared.records == [BrokerFencedEvent(1, 11)]
    assert prepared.result == {"is_caught_up": True, "is_fenced": True, "should_shut_down": True}
    assert prepared.session.is_over


def test_leaders_that_have_not_moved_are_moved_with_the_next_heartbeat():
    """A foreign log may hold the shutdown mark without its partition changes."""
    image = small_cluster(shutting_down(1))
    prepared = prepare(image, heartbeat(), evaluation())
    assert prepared.records[0] == PartitionChangeRecord(0, topic_id(1), isr=(2, 3), leader=2)
    assert prepared.session.shutdown_offset == END_OFFSET + 2
    assert not after(image, prepared.records).topics.leads_any(1)


def test_with_no_active_broker_left_a_shutdown_is_granted():
    image = small_cluster(fenced(2), fenced(3), shutting_down(1), broker_count=3)
    image = replayed(
        *(PartitionChangeRecord(i, topic_id(1), leader=-1) for i in range(3)), base=image
    )
    context = evaluation()
    first = prepare(image, heartbeat(want_shutdown=True), context)
    context.sessions.update(first.session, 0)
    assert prepare(image, heartbeat(want_shutdown=True), context).result["should_shut_down"]


def test_an_offline_directory_takes_its_replicas_out_of_the_isr():
    image = small_cluster(
        registration(1, log_dirs=(directory(1, 0), directory(1, 1))),
        PartitionChangeRecord(
            0, topic_id(1), directories=(directory(1, 1), directory(2), directory(3))
        ),
    )
    command = heartbeat(offline_log_dirs=(directory(1, 1),))
    records = prepare(image, command, evaluation()).records
    assert records == [
        PartitionChangeRecord(0, topic_id(1), isr=(2, 3), leader=2),
        BrokerRegistrationChangeRecord(1, 11, log_dirs=(directory(1, 0),)),
    ]
    assert prepare(after(image, records), command, evaluation()).records == []
