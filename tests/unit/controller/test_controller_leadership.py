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


def test_loss_of_leadership_tells_the_three_fates_apart():
    bench = Bench()
    start = bench.log.log_end
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
