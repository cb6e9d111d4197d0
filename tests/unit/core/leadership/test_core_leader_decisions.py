"""What a leader decides about one replica or its log, at the bounds: voters, transfer, trimming."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.core.leadership.transfer import why_not
from quorum.core.membership.voter_change_checks import CAUGHT_UP_WITHIN_MS, why_not_caught_up
from quorum.core.messages.fetch_messages import Subtree
from quorum.core.positions.snapshot_index import SnapshotIndex
from quorum.core.replication.trimming import trim_target
from quorum.core.state.relay_table import LINKS_MAX, LINKS_REPEAT_MS, Relay
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.types import OffsetAndEpoch, SnapshotId, Voter
from tests.support.core_disk import key

CONFIG = QuorumConfig()
NOW_MS = 1_000_000


def replica(node_id: int = 4, **known: Any) -> ReplicaProgress:
    progress = ReplicaProgress(key(node_id), is_voter=False, live_since_ms=NOW_MS)
    for name, value in known.items():
        setattr(progress, name, value)
    return progress


@pytest.mark.parametrize(
    ("progress", "message"),
    [
        (None, "does not fetch"),
        (replica(last_fetch_ms=NOW_MS), "has not caught up"),
        (replica(last_fetch_ms=NOW_MS, last_caught_up_ms=0), ""),
        (replica(last_fetch_ms=NOW_MS - CAUGHT_UP_WITHIN_MS, last_caught_up_ms=5), ""),
        (replica(last_fetch_ms=NOW_MS - CAUGHT_UP_WITHIN_MS - 1, last_caught_up_ms=5), "too long"),
    ],
)
@pytest.mark.interpreted
def test_a_new_voter_must_fetch_and_have_caught_up(
    progress: ReplicaProgress | None, message: str
) -> None:
    """See KIP-853 (AddRaftVoter)."""
    observers = {} if progress is None else {key(4): progress}
    leader: Any = SimpleNamespace(observers=observers, remote={})
    core: Any = SimpleNamespace(now_ms=NOW_MS)
    refusal = why_not_caught_up(core, leader, Voter(key(4)))
    if message:
        assert refusal is not None
        assert message in refusal[1]
    else:
        assert refusal is None


@pytest.mark.parametrize(
    ("fetched_ms_ago", "level_ms_ago", "message"),
    [
        (None, 0, "has not fetched"),
        (CONFIG.fetch_timeout_ms, 0, ""),
        (CONFIG.fetch_timeout_ms + 1, 0, "been silent for"),
        (0, CONFIG.fetch_timeout_ms, ""),
        (0, CONFIG.fetch_timeout_ms + 1, "3 records behind"),
    ],
)
@pytest.mark.interpreted
def test_a_successor_must_be_in_contact_and_caught_up(
    fetched_ms_ago: int | None, level_ms_ago: int, message: str
) -> None:
    last_fetch_ms = -1 if fetched_ms_ago is None else NOW_MS - fetched_ms_ago
    progress = replica(
        last_fetch_ms=last_fetch_ms, last_caught_up_ms=NOW_MS - level_ms_ago, end_offset=7
    )
    core: Any = SimpleNamespace(now_ms=NOW_MS, config=CONFIG, log=SimpleNamespace(end_offset=10))
    problem = why_not(core, progress)
    assert (message in problem) if message else problem == ""


def trimmed_to(
    *positions: int,
    live_ms_ago: int = 0,
    led_ms: int = 1 << 30,
    epoch: int = 5,
    held_ms: int = 0,
    high_watermark: int = 100,
    log_start: int = 0,
) -> int | None:
    """Where a leader with checkpoints at 10, 20 and 30 trims to."""
    ids = [SnapshotId(each, 1) for each in (10, 20, 30)]
    ages = dict.fromkeys(ids, held_ms)
    remote = {
        number: replica(number, is_voter=True, end_offset=each, live_since_ms=NOW_MS - live_ms_ago)
        for number, each in enumerate(positions, 2)
    }
    core: Any = SimpleNamespace(
        now_ms=NOW_MS,
        config=CONFIG,
        epoch=epoch,
        high_watermark=high_watermark,
        snapshots=SnapshotIndex(ids, ages_ms=ages, now_ms=NOW_MS),
        log=SimpleNamespace(start=OffsetAndEpoch(log_start, 1), end_offset=100),
    )
    leader: Any = SimpleNamespace(since_ms=NOW_MS - led_ms, remote=remote, observers={})
    target = trim_target(core, leader)
    return None if target is None else target.offset


@pytest.mark.interpreted
def test_the_log_keeps_what_live_replicas_need() -> None:
    """See 630.5. Method: positions at and around a checkpoint's end."""
    assert trimmed_to(100, 100) == 30
    assert trimmed_to(100, 20) == 20
    assert trimmed_to(100, 19) == 10
    assert trimmed_to(100, 9) is None
    assert trimmed_to() == 30, "nobody needs anything"


@pytest.mark.interpreted
def test_a_replica_that_went_away_holds_the_log_for_one_session() -> None:
    session_ms = CONFIG.observer_session_ms
    assert trimmed_to(9, live_ms_ago=session_ms) is None
    assert trimmed_to(9, live_ms_ago=session_ms + 1) == 30


@pytest.mark.interpreted
def test_a_new_leader_trims_nothing_before_it_knows_the_observers() -> None:
    session_ms = CONFIG.observer_session_ms
    assert trimmed_to(100, led_ms=session_ms) is None
    assert trimmed_to(100, led_ms=session_ms + 1) == 30
    assert trimmed_to(100, led_ms=0, epoch=1) == 30, "nobody led before"


@pytest.mark.interpreted
def test_a_checkpoint_held_for_the_maximum_time_does_not_wait_longer() -> None:
    lag_ms = CONFIG.start_offset_lag_max_ms
    assert trimmed_to(9, held_ms=lag_ms - 1) is None
    assert trimmed_to(9, held_ms=lag_ms) == 30


@pytest.mark.interpreted
def test_the_log_is_trimmed_below_the_high_watermark_and_upwards_only() -> None:
    assert trimmed_to(100, high_watermark=30) == 30
    assert trimmed_to(100, high_watermark=29) == 20
    assert trimmed_to(100, log_start=29) == 30
    assert trimmed_to(100, log_start=30) is None


def relay(*below: ReplicaProgress) -> Relay:
    made = Relay(9)
    for each in below:
        made.downstream[each.key] = each
    made.refresh()
    return made


def test_a_relay_reports_the_lowest_need_and_every_member() -> None:
    further = Subtree(low=3, members=2, links=((21, 12), (22, 12)), is_provisional=True)
    made = relay(replica(12, end_offset=8, subtree=further), replica(11, end_offset=5))
    assert made.subtree == Subtree(3, 4, ((11, 9), (12, 9), (21, 12), (22, 12)), True)
    assert relay(replica(11, end_offset=5)).subtree == Subtree(5, 1, ((11, 9),))
    assert relay(replica(11)).subtree == Subtree(0, 1, ((11, 9),)), "unknown: it needs everything"
    assert relay().subtree is None


def test_a_report_names_a_bounded_number_of_links() -> None:
    made = relay(*(replica(each, end_offset=1) for each in range(100, 101 + LINKS_MAX)))
    assert made.subtree is not None
    assert (len(made.subtree.links), made.subtree.members) == (LINKS_MAX, LINKS_MAX + 1)


def test_a_position_that_is_lower_is_taken_in_at_once() -> None:
    made = relay(replica(11, end_offset=5))
    made.downstream[key(11)].end_offset = 7
    made.note(made.downstream[key(11)])
    assert made.subtree is not None
    assert made.subtree.low == 5, "a higher one with the next upkeep"
    made.downstream[key(11)].end_offset = 4
    made.note(made.downstream[key(11)])
    assert made.subtree.low == 4
    first = Relay(9, {key(11): replica(11, end_offset=2)})
    first.note(first.downstream[key(11)])
    assert first.subtree == Subtree(2, 1, ((11, 9),))


def test_links_are_reported_when_they_are_news_and_now_and_then() -> None:
    """Method: the same links, then time, another epoch, another link."""
    made = relay(replica(11, end_offset=5))
    full, short = Subtree(5, 1, ((11, 9),)), Subtree(5, 1)
    assert made.report(100, 1, 0) == full
    assert made.report(99 + LINKS_REPEAT_MS, 1, 0) == short
    assert made.report(100 + LINKS_REPEAT_MS, 1, 0) == full
    assert made.report(101 + LINKS_REPEAT_MS, 1, 0) == short
    assert made.report(102 + LINKS_REPEAT_MS, 2, 0) == full
    made.downstream[key(12)] = replica(12, end_offset=5)
    made.refresh()
    assert made.report(103 + LINKS_REPEAT_MS, 2, 0) == Subtree(5, 2, ((11, 9), (12, 9)))
    assert relay().report(0, 1, 0) is None


def test_a_restarted_relay_keeps_its_log_for_observers_before_their_first_fetch() -> None:
    made = relay(replica(11, end_offset=5))
    made.silent_until_ms = 50
    assert made.reported(49, 2) == Subtree(2, 1, ((11, 9),), is_provisional=True)
    assert made.reported(49, 8) == Subtree(5, 1, ((11, 9),), is_provisional=True)
    assert made.reported(50, 2) == Subtree(5, 1, ((11, 9),))
    alone = Relay(9, silent_until_ms=50)
    assert alone.reported(49, 2) == Subtree(2, 0, is_provisional=True)
    assert alone.report(49, 1, 2) == Subtree(2, 0, is_provisional=True)


def test_silent_observers_are_forgotten() -> None:
    made = relay(replica(11, live_since_ms=100), replica(12, live_since_ms=99))
    assert made.forget_silent(100)
    assert set(made.downstream) == {key(11)}
    assert not made.forget_silent(100)
