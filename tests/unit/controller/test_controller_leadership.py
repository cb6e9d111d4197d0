"""Answers and leadership: proof that one still leads, and what its loss does to commands."""

from __future__ import annotations

import pytest

from quorate.controller.config import ControllerConfig
from quorum.errors import ConfigError, ErrorCode
from tests.support.controller_bench import Bench, set_config
from tests.support.fake_log_driver import OTHER

OK, UNKNOWN = ErrorCode.NONE, ErrorCode.OUTCOME_UNKNOWN
NOT_LEADER = ErrorCode.NOT_LEADER_OR_FOLLOWER


# ---------------------------------------------------------------------- proof of leadership


@pytest.mark.parametrize(
    ("command", "code"),
    [(set_config("x"), ErrorCode.INVALID_CONFIG), (set_config(5), OK)],
)
def test_an_answer_without_a_batch_needs_proof_of_leadership(command, code):
    bench = Bench()
    bench.submit(set_config(5))
    bench.flush()
    bench.log.settle()
    bench.codes()
    bench.submit(command, "a")
    bench.flush()
    assert bench.answers == []
    bench.log.confirm_reads()
    assert bench.codes() == [("a", code)]
    bench.submit(command, "b")
    bench.flush()
    bench.log.fail_reads()
    assert bench.codes() == [("b", UNKNOWN)]


def test_a_dry_run_changes_nothing_and_waits_for_what_it_rests_on():
    bench = Bench(groups_unflushed_max=9)
    bench.submit(set_config(5, dry_run=True), "alone")
    bench.flush()
    assert bench.codes() == [("alone", OK)]
    bench.submit(set_config(5), "write")
    bench.flush()
    bench.submit(set_config(6, dry_run=True), "after")
    bench.flush()
    assert bench.answers == []
    bench.log.settle()
    assert bench.codes() == [("write", OK), ("after", OK)]
    assert bench.value() == "5"


# ---------------------------------------------------------------------- leadership


def test_without_leadership_commands_are_sent_on():
    bench = Bench(is_active=False)
    bench.log.depose()
    bench.submit(set_config(1))
    ((_, answer),) = bench.answers
    assert (answer.code, answer.leader_hint) == (NOT_LEADER, OTHER)


def test_a_leader_that_cannot_write_yet_keeps_commands_waiting():
    bench = Bench(is_active=False)
    bench.log.elect(is_committed=False)
    bench.submit(set_config(1), "a")
    bench.flush()
    assert bench.answers == []
    assert bench.log.proposals == []
    bench.log.settle()
    bench.flush()
    bench.log.settle()
    bench.flush()
    bench.log.settle()
    assert bench.codes() == [("a", OK)]


def test_loss_of_leadership_distinguishes_three_outcomes():
    bench = Bench()
    start = bench.log.log_end_offset
    for value in (1, 2):
        bench.submit(set_config(value), f"appended {value}")
    bench.submit(set_config("x"), "refused on it")
    bench.flush()
    bench.log.commit(start + 1)
    bench.submit(set_config(9), "queued")
    bench.flush()
    assert bench.answers == []
    bench.log.depose()
    assert bench.codes() == [
        ("appended 1", OK),
        ("appended 2", UNKNOWN),
        ("refused on it", UNKNOWN),
        ("queued", NOT_LEADER),
    ]
    assert bench.value() == "1"
    assert bench.controller.groups_in_flight == 0


def test_a_deposed_leader_claims_nothing_about_the_present():
    """What a group without a committed batch found may be out of date: a successor went on."""
    bench = Bench()
    bench.submit(set_config(5))
    bench.flush()
    bench.log.settle()
    bench.codes()
    bench.submit(set_config(5), "no-op")
    bench.submit(set_config("x"), "refusal")
    bench.submit(set_config(6), "write")
    bench.submit(set_config("y"), "refused on it")
    bench.flush()
    bench.log.depose()
    assert bench.codes() == [
        ("no-op", UNKNOWN),
        ("refusal", UNKNOWN),
        ("write", UNKNOWN),
        ("refused on it", UNKNOWN),
    ]


def test_a_committed_batch_of_the_group_proves_what_was_found_beside_it():
    bench = Bench()
    bench.submit(set_config(5))
    bench.flush()
    bench.log.settle()
    bench.codes()
    start = bench.log.log_end_offset
    bench.submit(set_config(5), "no-op before")
    bench.submit(set_config(6), "committed")
    bench.submit(set_config("x"), "refusal behind")
    bench.submit(set_config(7), "open")
    bench.submit(set_config(7), "no-op behind the open one")
    bench.flush()
    bench.log.commit(start + 1)
    bench.log.depose()
    assert bench.codes() == [
        ("no-op before", OK),
        ("committed", OK),
        ("refusal behind", ErrorCode.INVALID_CONFIG),
        ("open", UNKNOWN),
        ("no-op behind the open one", UNKNOWN),
    ]


def test_proof_of_one_group_is_none_for_the_next():
    bench = Bench(groups_unflushed_max=9)
    start = bench.log.log_end_offset
    bench.submit(set_config(6), "first group")
    bench.flush()
    bench.submit(set_config(6), "no-op")
    bench.submit(set_config(7), "second group")
    bench.flush()
    bench.log.commit(start + 1)
    bench.log.depose()
    assert bench.codes() == [
        ("first group", OK),
        ("no-op", UNKNOWN),
        ("second group", UNKNOWN),
    ]


def test_a_deposed_leader_repeats_only_first_answers_that_are_committed():
    bench = Bench(groups_unflushed_max=9)
    pid = bench.producer()
    who = {"producer_id": pid, "producer_epoch": 0, "oldest_open": 0}
    bench.submit(set_config(5), "first", sequence=0, **who)
    bench.flush()
    bench.log.settle()
    bench.submit(set_config(5), "repeat of a committed one", sequence=0, **who)
    bench.submit(set_config(6), "open", sequence=1, **who)
    bench.submit(set_config(6), "repeat of the open one", sequence=1, **who)
    bench.flush()
    bench.log.depose()
    assert bench.codes() == [
        ("first", OK),
        ("repeat of a committed one", OK),
        ("open", UNKNOWN),
        ("repeat of the open one", UNKNOWN),
    ]


@pytest.mark.parametrize("is_confirmed", [False, True])
def test_what_is_held_without_a_commit_is_unknown_once_deposed(is_confirmed):
    """Nothing appended: proof of leadership alone does not outlive the leadership term it rests
    on.
    """
    bench = Bench(groups_unflushed_max=9)
    bench.submit(set_config(6), "write")
    bench.flush()
    bench.submit(set_config(6), "no-op")
    bench.submit(set_config("x"), "refusal")
    bench.flush()
    if is_confirmed:
        bench.log.confirm_reads()
    bench.log.depose()
    assert bench.codes() == [("write", UNKNOWN), ("no-op", UNKNOWN), ("refusal", UNKNOWN)]


def test_after_a_loss_the_other_leaders_log_counts():
    bench = Bench()
    bench.submit(set_config(1))
    bench.flush()
    bench.log.depose()
    other = Bench()
    other.submit(set_config(77))
    other.flush()
    bench.log.append_foreign(other.log.batches[-1][2], 1)
    bench.log.commit()
    assert bench.value() == "77"
    bench.log.elect()
    bench.submit(set_config(2), "again")
    bench.flush()
    bench.log.settle()
    assert bench.codes()[-1] == ("again", OK)
    assert bench.value() == "2"


def test_what_was_uncommitted_may_still_be_committed_by_the_next_leader():
    bench = Bench()
    pid = bench.producer()
    who = {"producer_id": pid, "producer_epoch": 0, "sequence": 0, "oldest_open": 0}
    bench.submit(set_config(1), "first", **who)
    bench.flush()
    bench.log.depose(truncates=False)
    assert bench.codes() == [("first", UNKNOWN)]
    bench.log.commit()
    bench.log.elect()
    bench.submit(set_config(1), "retried", **who)
    bench.flush()
    assert bench.codes() == [("retried", OK)]


def test_a_new_epoch_without_a_pause_fails_what_the_old_one_left_open():
    bench = Bench()
    bench.submit(set_config(1), "a")
    bench.flush()
    bench.log.elect(is_committed=False)
    assert bench.codes() == [("a", UNKNOWN)]
    bench.submit(set_config(2), "b")
    bench.log.settle()
    bench.flush()
    bench.log.settle()
    assert bench.codes() == [("b", OK)]


def test_impossible_settings_are_all_reported():
    with pytest.raises(ConfigError) as caught:
        ControllerConfig(cluster_id="c", queue_commands_max=0, groups_in_flight_max=-1)
    assert len(caught.value.problems) == 2
