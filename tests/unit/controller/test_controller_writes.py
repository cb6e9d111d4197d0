"""The way of a command: queue, group, commit, answer; and what loss of leadership does to it."""

from __future__ import annotations

from quorum.batch import iterate_records, scan_batches
from quorum.errors import ErrorCode
from statemachine.commands import CreateTopic, DeleteTopic, InitProducerId
from statemachine.fingerprint import command_fingerprint
from statemachine.machine import StateMachine
from statemachine.producers import is_refusal
from tests.support.controller_bench import Bench, set_config

OK, UNKNOWN = ErrorCode.NONE, ErrorCode.OUTCOME_UNKNOWN
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


def test_an_answer_leaves_only_when_its_batch_is_committed():
    bench = Bench()
    end = bench.log.log_end_offset
    bench.submit(set_config(5), "a")
    assert bench.log.log_end_offset == end
    bench.flush()
    assert bench.log.log_end_offset == end + 1
    bench.log.flush_disk()
    assert bench.answers == []
    assert bench.value() is None
    bench.log.commit()
    ((tag, answer),) = bench.answers
    assert (tag, answer.code, answer.offset, answer.epoch) == ("a", OK, end + 1, 1)
    assert bench.value() == "5"


def test_answers_come_in_the_order_of_the_commands_whatever_they_are():
    bench = Bench()
    bench.submit(set_config(5), "write")
    bench.submit(set_config(5), "no-op")
    bench.submit(set_config("x"), "refusal")
    bench.submit(set_config(6, dry_run=True), "dry run")
    bench.submit(set_config(7), "second write")
    bench.flush()
    assert bench.answers == []
    bench.log.settle()
    assert bench.codes() == [
        ("write", OK),
        ("no-op", OK),
        ("refusal", ErrorCode.INVALID_CONFIG),
        ("dry run", OK),
        ("second write", OK),
    ]
    assert bench.log.proposals == [2]
    assert bench.value() == "7"


def test_commands_are_evaluated_on_what_is_not_yet_committed():
    bench = Bench(groups_unflushed_max=9)
    bench.submit(CreateTopic("new", 1, 1), "create")
    bench.flush()
    bench.submit(CreateTopic("new", 1, 1), "again")
    bench.flush()
    bench.submit(DeleteTopic("new"), "delete")
    bench.flush()
    bench.log.confirm_reads()
    assert bench.answers == []
    bench.log.settle()
    assert bench.codes() == [
        ("create", OK),
        ("again", ErrorCode.TOPIC_ALREADY_EXISTS),
        ("delete", OK),
    ]


def test_a_group_grows_while_another_is_on_its_way_to_the_disk():
    bench = Bench()
    bench.submit(set_config(1))
    bench.flush()
    for value in (2, 3, 4):
        bench.submit(set_config(value))
        bench.flush()
    assert bench.log.proposals == [1]
    bench.log.flush_disk()
    bench.flush()
    assert bench.log.proposals == [1, 3]
    assert bench.controller.groups_in_flight == 2


def test_groups_are_bounded_in_commands_bytes_and_number():
    bench = Bench(group_commands_max=2, groups_unflushed_max=9, groups_in_flight_max=2)
    for value in range(1, 8):
        bench.submit(set_config(value))
    for _ in range(5):
        bench.flush()
    assert bench.log.proposals == [2, 2]
    assert bench.controller.queue_length == 3
    bench.log.settle()
    bench.flush()
    assert bench.log.proposals == [2, 2, 2]
    bench = Bench(group_bytes_max=150)
    for value in range(1, 8):
        bench.submit(set_config(value))
    bench.flush()
    assert bench.log.proposals == [2]


def test_a_full_queue_answers_at_once():
    bench = Bench(queue_commands_max=2)
    for tag in "abc":
        bench.submit(set_config(1), tag)
    assert bench.codes() == [("c", ErrorCode.RESOURCE_EXHAUSTED)]
    bench.flush()
    bench.submit(set_config(2), "d")
    bench.log.settle()
    assert [tag for tag, _ in bench.codes()] == ["a", "b"]


def test_a_commit_inside_a_group_is_waited_out():
    bench = Bench()
    start = bench.log.log_end_offset
    for value in (1, 2, 3):
        bench.submit(set_config(value), value)
    bench.flush()
    bench.log.flush_disk()
    bench.log.commit(start + 2)
    assert bench.answers == []
    assert bench.value() is None
    bench.log.commit()
    assert [tag for tag, _ in bench.codes()] == [1, 2, 3]
    assert bench.value() == "3"


def test_several_groups_may_be_committed_in_one_delivery():
    bench = Bench(groups_unflushed_max=9)
    for value in (1, 2, 3):
        bench.submit(set_config(value), value)
        bench.flush()
    start = bench.log.high_watermark
    bench.log.flush_disk()
    bench.log.commit(start + 2)
    assert [tag for tag, _ in bench.codes()] == [1, 2]
    bench.log.commit()
    assert [tag for tag, _ in bench.codes()] == [3]


def test_control_batches_between_groups_move_the_position_only():
    bench = Bench(groups_unflushed_max=9)
    bench.submit(set_config(1), "a")
    bench.flush()
    bench.log.append_control()
    bench.submit(set_config(2), "b")
    bench.flush()
    bench.log.append_control()
    bench.log.settle()
    assert bench.codes() == [("a", OK), ("b", OK)]
    assert bench.controller.image.provenance.end_offset == bench.log.log_end_offset
    bench.log.append_control()
    bench.log.settle()
    assert bench.controller.image.provenance.end_offset == bench.log.log_end_offset


def test_a_control_batch_behind_a_group_is_delivered_with_the_group_before_the_next():
    bench = Bench(groups_unflushed_max=9)
    bench.submit(set_config(1), "a")
    bench.flush()
    bench.log.append_control()
    middle = bench.log.log_end_offset
    bench.submit(set_config(2), "b")
    bench.flush()
    bench.log.flush_disk()
    bench.log.commit(middle)
    assert bench.codes() == [("a", OK)]
    assert bench.controller.image.provenance.end_offset == middle
    bench.log.commit()
    assert bench.codes() == [("b", OK)]


def test_a_control_batch_before_a_group_is_applied_when_it_is_committed():
    bench = Bench()
    bench.log.append_control()
    middle = bench.log.log_end_offset
    bench.submit(set_config(1), "a")
    bench.flush()
    bench.log.flush_disk()
    bench.log.commit(middle)
    assert bench.controller.image.provenance.end_offset == middle
    bench.log.commit()
    assert bench.codes() == [("a", OK)]


# ---------------------------------------------------------------------- duplicates


def test_a_repeat_gets_the_first_answer_before_and_after_commit():
    bench = Bench(groups_unflushed_max=9)
    pid = bench.producer()
    who = {"producer_id": pid, "producer_epoch": 0, "sequence": 0, "oldest_open": 0}
    command = CreateTopic("new", 1, 1)
    for tag in ("first", "in the same group"):
        bench.submit(command, tag, **who)
    bench.flush()
    bench.submit(command, "before commit", **who)
    bench.flush()
    end = bench.log.log_end_offset
    assert bench.answers == []
    bench.log.settle()
    bench.submit(command, "after commit", **who)
    bench.flush()
    assert bench.log.log_end_offset == end
    assert [tag for tag, _ in bench.answers] == [
        "first",
        "in the same group",
        "before commit",
        "after commit",
    ]
    first = bench.answers[0][1]
    for _, answer in bench.answers[1:]:
        assert (answer.code, answer.offset, answer.epoch) == (OK, first.offset, first.epoch)
        assert answer.result == first.result
    assert first.result["partition_count"] == 1


def test_a_refusal_uses_up_no_sequence_number():
    bench = Bench()
    pid = bench.producer()
    who = {"producer_id": pid, "producer_epoch": 0, "sequence": 0, "oldest_open": 0}
    bench.submit(set_config(1, topic="later"), "refused", **who)
    bench.flush()
    bench.log.confirm_reads()
    bench.submit(CreateTopic("later", 1, 1))
    bench.flush()
    bench.log.settle()
    bench.submit(set_config(1, topic="later"), "retried", **who)
    bench.flush()
    bench.log.settle()
    codes = dict(bench.codes())
    assert codes["refused"] is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert codes["retried"] is OK


def test_the_refusal_of_a_repeat_is_final_also_for_copies_that_come_late():
    bench = Bench()
    pid = bench.producer()
    who = {"producer_id": pid, "producer_epoch": 0, "sequence": 0, "oldest_open": 0}
    bench.submit(set_config(1, topic="later"), "refused", is_repeat=True, **who)
    bench.flush()
    bench.log.settle()
    bench.submit(CreateTopic("later", 1, 1))
    bench.flush()
    bench.log.settle()
    bench.submit(set_config(1, topic="later"), "late copy", **who)
    bench.flush()
    bench.log.settle()
    answers = {tag: answer for tag, answer in bench.answers if tag}
    assert answers["refused"].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answers["late copy"] == answers["refused"]
    assert bench.controller.image.configs.value(2, "later", "retention.ms") is None
    state = bench.controller.image.producers.states.get(pid)
    assert (state.last_sequence, is_refusal(state.applied[0].answer)) == (0, True)


def test_a_repeat_that_finds_nothing_to_change_does_not_change_anything_later():
    bench = Bench()
    pid = bench.producer()
    who = {"producer_id": pid, "producer_epoch": 0, "sequence": 0, "oldest_open": 0}
    bench.submit(set_config(1))
    bench.flush()
    bench.log.settle()
    bench.submit(set_config(1), "nothing to do", is_repeat=True, **who)
    bench.submit(set_config(2))
    bench.flush()
    bench.log.settle()
    bench.submit(set_config(1), "late copy", **who)
    bench.flush()
    bench.log.settle()
    answers = {tag: answer for tag, answer in bench.answers if tag}
    assert answers["nothing to do"].code is OK
    assert answers["late copy"] == answers["nothing to do"]
    assert bench.value() == "2"


def test_a_repeated_dry_run_writes_nothing():
    bench = Bench()
    pid = bench.producer()
    end = bench.log.log_end_offset
    who = {"producer_id": pid, "producer_epoch": 0, "sequence": 0, "oldest_open": 0}
    bench.submit(CreateTopic("new", 1, 1, dry_run=True), "dry", is_repeat=True, **who)
    bench.flush()
    assert bench.log.log_end_offset == end


def test_the_refusal_of_a_repeat_that_is_not_committed_is_unknown():
    bench = Bench()
    pid = bench.producer()
    who = {"producer_id": pid, "producer_epoch": 0, "sequence": 0, "oldest_open": 0}
    bench.submit(set_config("x"), "refused", is_repeat=True, **who)
    bench.flush()
    bench.log.confirm_reads()
    assert bench.codes() == []
    bench.log.depose()
    assert bench.codes() == [("refused", ErrorCode.OUTCOME_UNKNOWN)]


def test_sequence_errors_are_answers_too():
    bench = Bench()
    pid = bench.producer()
    bench.submit(set_config(1), producer_id=99, producer_epoch=0, sequence=0, oldest_open=0)
    bench.submit(set_config(1), producer_id=pid, producer_epoch=0, sequence=32, oldest_open=0)
    bench.flush()
    bench.log.confirm_reads()
    assert [code for _, code in bench.codes()] == [
        ErrorCode.UNKNOWN_PRODUCER_ID,
        ErrorCode.PRODUCER_WINDOW_EXCEEDED,
    ]


def test_who_and_why_ride_in_the_first_record_and_replay_alike_elsewhere():
    bench = Bench()
    pid = bench.producer()
    bench.submit(
        CreateTopic("new", 2, 1),
        principal="User:ann",
        client_id="cli",
        request_id="r1",
        reason="because",
        traceparent="00-1",
        producer_id=pid,
        producer_epoch=0,
        sequence=0,
        oldest_open=0,
    )
    bench.flush()
    bench.log.settle()
    data = bench.log.batches[-1][2]
    (header,) = scan_batches(data)
    assert (header.producer_id, header.base_sequence, header.record_count) == (pid, 0, 3)
    records = iterate_records(data, header)
    headers = dict(records[0].headers)
    assert headers.pop("answer") is not None
    assert headers.pop("fingerprint") == command_fingerprint(CreateTopic("new", 2, 1))
    assert headers == {
        "principal": b"User:ann",
        "client-id": b"cli",
        "request-id": b"r1",
        "reason": b"because",
        "traceparent": b"00-1",
        "open": b"0",
    }
    assert not any(record.headers for record in records[1:])
    follower = StateMachine()
    follower.apply(b"".join(batch for _, _, batch in bench.log.batches))
    assert follower.image.has_content_of(bench.controller.image)


def test_a_command_whose_batch_would_be_too_large_is_refused_alone():
    """The log never gets a batch that one answer to a Fetch could not carry."""
    bench = Bench(batch_bytes_max=1000)
    end = bench.log.log_end_offset
    bench.submit(CreateTopic("large", 50, 1), "large")
    bench.submit(set_config(5), "small")
    bench.flush()
    bench.log.settle()
    assert bench.codes() == [("large", ErrorCode.MESSAGE_TOO_LARGE), ("small", OK)]
    assert bench.log.log_end_offset == end + 1


def test_the_configured_window_bounds_what_a_producer_has_open():
    bench = Bench(producer_window=2)
    bench.submit(InitProducerId(), "init")
    bench.flush()
    bench.log.settle()
    producer_id = bench.answers[0][1].result["producer_id"]
    for sequence in range(3):
        bench.submit(
            set_config(sequence),
            sequence,
            producer_id=producer_id,
            producer_epoch=0,
            sequence=sequence,
            oldest_open=0,
        )
    bench.flush()
    bench.log.settle()
    assert bench.codes()[1:] == [(0, OK), (1, OK), (2, ErrorCode.PRODUCER_WINDOW_EXCEEDED)]
