"""A controller's leadership term: activation, periodic tasks and broker sessions."""

from __future__ import annotations

from dataclasses import replace

import pytest

from quorum.batch import iterate_records, scan_batches
from quorum.errors import CommandError, ErrorCode
from statemachine.codec import batch_headers
from statemachine.commands import BrokerHeartbeat, Command, FeatureRange, RegisterBroker
from statemachine.prepare.view import View
from statemachine.records import (
    AbortTransactionRecord,
    BeginTransactionRecord,
    BrokerFencedEvent,
    BrokerRegistrationChangeRecord,
    ConfigRecord,
    ExpireProducerRecord,
    NoOpRecord,
    RegisterBrokerRecord,
)
from tests.support.controller_bench import BOOTSTRAP, Bench, foreign_batch, set_config

OK = ErrorCode.NONE
HEARTBEAT = BrokerHeartbeat(1, 1, 100)


# ---------------------------------------------------------------------- activation


def test_an_empty_log_gets_the_bootstrap_records_once_as_one_batch():
    bench = Bench(is_active=False)
    bench.log.elect()
    bench.flush()
    assert bench.log.proposals == [1]
    assert bench.last_records() == list(BOOTSTRAP)
    bench.flush()
    bench.log.settle()
    bench.flush()
    bench.log.depose()
    bench.log.elect()
    bench.flush()
    assert bench.log.proposals == [1]


def test_a_bootstrap_that_was_lost_is_written_again_by_the_next_leader():
    bench = Bench(is_active=False)
    bench.log.elect()
    bench.flush()
    bench.log.depose()
    bench.log.elect()
    bench.flush()
    bench.log.settle()
    assert bench.log.proposals == [1, 1]
    assert bench.controller.image.topics.id_of("t") is not None


def test_activation_comes_before_every_waiting_command():
    bench = Bench(is_active=False)
    bench.log.elect(is_committed=False)
    bench.submit(set_config(1), "a")
    bench.log.settle()
    for _ in range(3):
        bench.flush()
        bench.log.settle()
    assert bench.codes() == [("a", OK)]


def test_activation_waits_until_everything_older_is_applied():
    bench = Bench(is_active=False)
    bench.log.elect()
    bench.log.high_watermark += 1
    bench.flush()
    assert not bench.controller.is_active
    bench.log.high_watermark -= 1
    bench.flush()
    assert bench.controller.is_active


def test_a_transaction_left_open_is_aborted_first():
    bench = Bench(groups_unflushed_max=9)
    bench.log.depose()
    image = bench.controller.image
    bench.log.append_foreign(
        foreign_batch(BeginTransactionRecord("t"), ConfigRecord(2, "t", "retention.ms", "9")), 2
    )
    bench.log.commit()
    assert bench.controller.image.has_content_of(image)
    bench.log.elect()
    bench.submit(set_config(9), "a")
    bench.flush()
    bench.flush()
    assert type(bench.last_records()[0]) is AbortTransactionRecord
    assert bench.log.proposals == [1]
    bench.log.settle()
    assert bench.value() is None
    bench.flush()
    bench.log.settle()
    assert bench.codes() == [("a", OK)]
    assert bench.value() == "9"


# ---------------------------------------------------------------------- periodic tasks


def test_noops_keep_an_idle_log_moving_and_only_then():
    bench = Bench(idle_interval_ms=500)
    bench.tick(499)
    assert bench.log.proposals == []
    assert bench.deadline_ms == 500
    bench.tick(500)
    assert bench.last_records() == [NoOpRecord()]
    bench.log.settle()
    bench.now = 900
    bench.ask(set_config(1))
    bench.tick(1_000)
    assert len(bench.log.proposals) == 2
    bench.tick(1_400)
    assert len(bench.log.proposals) == 3


def test_a_periodic_task_that_waits_for_the_disk_sets_no_deadline():
    bench = Bench(idle_interval_ms=500)
    bench.submit(set_config(1))
    bench.flush()
    bench.tick(500)
    assert bench.deadline_ms is None
    bench.log.settle()
    bench.flush()
    assert bench.log.proposals == [1, 1]
    assert bench.deadline_ms == 1_000


def test_a_silent_broker_is_fenced_when_its_session_ends():
    bench = Bench(session_timeout_ms=100)
    bench.tick(99)
    assert bench.log.proposals == []
    bench.tick(100)
    assert bench.last_records() == [BrokerFencedEvent(1, 1)]
    bench.log.settle()
    assert bench.controller.image.cluster.broker(1).fenced
    bench.tick(1_000)
    assert len(bench.log.proposals) == 1


def test_brokers_are_fenced_one_after_the_other():
    brokers = tuple(
        RegisterBrokerRecord(broker_id=i, incarnation_id=b"i" * 16, broker_epoch=i, fenced=False)
        for i in range(2, 5)
    )
    bench = Bench(bootstrap=(*BOOTSTRAP, *brokers), session_timeout_ms=100)
    for number in range(1, 5):
        bench.tick(100)
        bench.log.settle()
        assert len(bench.log.proposals) == number


def test_contact_counts_even_when_the_command_is_refused_or_waits():
    bench = Bench(session_timeout_ms=100, queue_commands_max=1)
    bench.submit(set_config(1))
    bench.submit(HEARTBEAT, "refused")
    bench.flush(90)
    assert bench.codes() == [("refused", ErrorCode.RESOURCE_EXHAUSTED)]
    bench.log.settle()
    bench.tick(189)
    bench.log.settle()
    assert not bench.controller.image.cluster.broker(1).fenced
    bench.submit(BrokerHeartbeat(1, 99, 0), "another life")
    bench.tick(190)
    bench.log.settle()
    assert bench.controller.image.cluster.broker(1).fenced


def test_a_new_leader_gives_every_unfenced_broker_a_fresh_session():
    bench = Bench(session_timeout_ms=100)
    bench.now = 5_000
    bench.log.depose()
    assert len(bench.controller.sessions) == 0
    bench.log.elect()
    bench.flush()
    bench.tick(5_099)
    assert bench.log.proposals == []
    bench.tick(5_100)
    assert bench.last_records() == [BrokerFencedEvent(1, 1)]


def test_a_broker_that_is_fenced_already_is_not_fenced_again():
    bench = Bench(session_timeout_ms=100)
    bench.ask(BrokerHeartbeat(1, 1, 100, want_fence=True))
    bench.tick(100)
    assert len(bench.log.proposals) == 1
    bench.log.depose()
    bench.log.elect()
    bench.flush()
    assert len(bench.controller.sessions) == 0


class NoRights:
    """Access of a caller who may do nothing."""

    def check_command(self, view: View, command: Command) -> None:
        raise CommandError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED, "no")

    def allows_heartbeat(self, view: View, heartbeat: BrokerHeartbeat) -> bool:
        return False


@pytest.mark.parametrize(
    ("heartbeat", "access", "is_contact"),
    [
        (HEARTBEAT, None, True),
        (replace(HEARTBEAT, dry_run=True), None, False),
        (HEARTBEAT, NoRights(), False),
    ],
    ids=["a real one", "a dry run", "without rights"],
)
def test_only_a_heartbeat_that_may_take_effect_is_a_contact(heartbeat, access, is_contact):
    """Goal: nobody keeps a broker's session alive who may not speak for it (KIP-631)."""
    bench = Bench()
    bench.ask(HEARTBEAT)
    bench.flush(bench.now + 10)
    bench.submit(heartbeat, "h", access=access)
    bench.flush(bench.now + 10)
    session = bench.controller.sessions.get(1, 1)
    assert (session.last_contact_ms == bench.now) is is_contact


def test_a_quiet_heartbeat_is_answered_without_a_round_trip():
    bench = Bench()
    bench.submit(HEARTBEAT, "h")
    bench.flush()
    assert bench.codes() == [("h", OK)]
    assert bench.log.tokens == []
    assert bench.controller.sessions.get(1, 1).metadata_offset == 100


def test_all_states_of_a_broker_come_from_the_log():
    """Register, unfence, shut down, return: a higher epoch per incarnation, without waits."""
    bench = Bench()
    incarnation = RegisterBroker(
        2,
        "c",
        b"x" * 16,
        features=(FeatureRange("metadata.version", 7, 33),),
        log_dirs=(b"d" * 16,),
    )
    epoch = bench.log.log_end_offset
    assert bench.ask(incarnation).result["broker_epoch"] == epoch
    assert bench.ask(BrokerHeartbeat(2, epoch, epoch)).result["is_fenced"] is False
    again = replace(incarnation, incarnation_id=b"y" * 16)
    assert bench.ask(again).code is ErrorCode.DUPLICATE_BROKER_REGISTRATION
    stopped = bench.ask(BrokerHeartbeat(2, epoch, epoch, want_shutdown=True))
    assert stopped.result["should_shut_down"] is True
    second = bench.ask(again)
    assert second.result["broker_epoch"] > epoch
    assert bench.ask(BrokerHeartbeat(2, epoch, 99)).code is ErrorCode.STALE_BROKER_EPOCH


def test_silent_producers_expire():
    bench = Bench(producer_expiration_ms=10_000, producer_expiry_check_ms=1_000)
    first = bench.producer()
    bench.now = 8_000
    second = bench.producer()
    bench.tick(9_000)
    bench.log.settle()
    bench.tick(12_000)
    assert bench.last_records() == [ExpireProducerRecord(first)]
    bench.log.settle()
    assert bench.controller.image.producers.states.get(second) is not None


def test_kafkas_codec_writes_kafkas_records_without_headers():
    bench = Bench(uses_native_codec=False, session_timeout_ms=100)
    bench.submit(set_config(1), principal="User:ann")
    bench.flush()
    bench.log.settle()
    data = bench.log.batches[-1][2]
    (header,) = scan_batches(data)
    (record,) = iterate_records(data, header)
    assert (record.value[:1], record.headers) == (b"\x01", ())
    assert batch_headers((), record.value) == (("principal", b"User:ann"),)
    bench.tick(100)
    assert bench.last_records() == [BrokerRegistrationChangeRecord(1, 1, fenced=1)]
