"""The allowed disk state at start, bound by bound, and the node state that follows from it."""

from __future__ import annotations

import random
from dataclasses import replace
from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.events import VoterDisqualified
from quorum.core.contract.local_events import DurableState, PartialDownload
from quorum.core.contract.output import (
    AbandonDownload,
    HighWatermarkAdvanced,
    LeaderEndpoints,
    LeadershipChanged,
    Output,
)
from quorum.core.messages.received_records import VotersAt
from quorum.core.node.raft_node import RaftNode
from quorum.core.state.upstream import NO_RELAYS, RelayPlan
from quorum.errors import QuorumUsageError
from quorum.types import (
    LOG_BEGINNING,
    ElectionState,
    EpochStart,
    NodeId,
    OffsetAndEpoch,
    SnapshotId,
)
from tests.support.core_cluster import CoreCluster
from tests.support.core_disk import disk_with, key, voter

START = OffsetAndEpoch(4, 2)
WHOLE: dict[str, Any] = {
    "election": ElectionState(3),
    "log_start": LOG_BEGINNING,
    "log_end": OffsetAndEpoch(6, 3),
    "epochs": (EpochStart(1, 0), EpochStart(2, 3), EpochStart(3, 5)),
    "snapshots": (),
    "voters": (VotersAt(-1, (voter(1), voter(2), voter(3))),),
}
TRIMMED = {
    **WHOLE,
    "log_start": START,
    "epochs": (EpochStart(2, 4), EpochStart(3, 5)),
    "snapshots": (START,),
}
EMPTY = {**TRIMMED, "log_end": START, "epochs": ()}


def started(
    *, relays: RelayPlan = NO_RELAYS, now_ms: int = 0, **state: Any
) -> tuple[RaftNode, Output]:
    node = RaftNode(
        config=QuorumConfig(), cluster_id="c", me=key(1), rng=random.Random(1), relays=relays
    )
    return node, node.start(now_ms, DurableState(**state))


@pytest.mark.parametrize(
    "state",
    [
        WHOLE,
        TRIMMED,
        EMPTY,
        {**TRIMMED, "snapshots": (OffsetAndEpoch(2, 1), OffsetAndEpoch(5, 2))},
        {**TRIMMED, "log_start": OffsetAndEpoch(5, 3), "snapshots": (OffsetAndEpoch(5, 3),),
         "epochs": (EpochStart(3, 5),)},
        # An index may have been written of records that were not.
        {**WHOLE, "epochs": (*WHOLE["epochs"], EpochStart(4, 6))},
        # An empty log has the epoch of what was trimmed, whatever the index still has.
        {**EMPTY, "epochs": (EpochStart(1, 0),)},
        {**WHOLE, "voters": (*WHOLE["voters"], VotersAt(0, (voter(1),)))},
    ],
)  # fmt: skip
def test_what_a_recovery_can_find_is_taken(state: dict[str, Any]) -> None:
    node, _ = started(**state)
    assert (node.log_start, node.log_end) == (state["log_start"], state["log_end"])


@pytest.mark.parametrize(
    ("state", "problem"),
    [
        ({**WHOLE, "log_start": OffsetAndEpoch(-1, 0)}, "is not within"),
        (
            {**TRIMMED, "log_start": OffsetAndEpoch(7, 3), "snapshots": (OffsetAndEpoch(7, 3),)},
            "is not within",
        ),
        ({**TRIMMED, "log_start": OffsetAndEpoch(4, 4)}, "epoch falls from log start"),
        ({**TRIMMED, "snapshots": (OffsetAndEpoch(3, 1),)}, "no snapshot ends at or above it"),
        (
            {**WHOLE, "log_start": OffsetAndEpoch(1, 1), "snapshots": ()},
            "no snapshot ends at or above it",
        ),
        (
            {**WHOLE, "epochs": (EpochStart(1, 0), EpochStart(1, 2), EpochStart(3, 5))},
            "epoch history does not rise",
        ),
        (
            {**WHOLE, "epochs": (EpochStart(1, 0), EpochStart(2, 5), EpochStart(3, 5))},
            "epoch history does not rise",
        ),
        (
            {**WHOLE, "epochs": (EpochStart(2, 0), EpochStart(1, 2), EpochStart(3, 5))},
            "epoch history does not rise",
        ),
        ({**WHOLE, "epochs": (EpochStart(1, 0), EpochStart(3, 6))}, "history ends with 1"),
        ({**WHOLE, "log_end": OffsetAndEpoch(6, 4)}, "history ends with 3"),
        ({**EMPTY, "log_end": OffsetAndEpoch(4, 3)}, "history ends with 2"),
        ({**WHOLE, "voters": (*WHOLE["voters"], *WHOLE["voters"])}, "voters: "),
        ({**WHOLE, "voters": (VotersAt(-1, (voter(1), voter(1))),)}, "appears twice"),
    ],
)
def test_what_no_recovery_can_find_is_refused(state: dict[str, Any], problem: str) -> None:
    with pytest.raises(QuorumUsageError) as refused:
        started(**state)
    assert problem in str(refused.value)
    assert ";" not in str(refused.value), "one contradiction, one problem"


def test_every_contradiction_is_named() -> None:
    with pytest.raises(QuorumUsageError) as refused:
        started(**{**WHOLE, "log_end": OffsetAndEpoch(6, 4), "voters": WHOLE["voters"] * 2})
    assert str(refused.value).count(";") == 1


def test_a_node_is_started_once() -> None:
    node, _ = started(**WHOLE)
    with pytest.raises(QuorumUsageError, match="started before"):
        node.start(0, DurableState(**WHOLE))


@pytest.mark.parametrize(
    ("stored", "snapshots", "expected"),
    [
        (0, (START,), 4),
        (5, (START,), 5),
        (9, (START,), 6),
        (0, (START, OffsetAndEpoch(6, 3)), 6),
        (0, (START, OffsetAndEpoch(5, 2)), 5),
    ],
)
def test_the_high_watermark_is_the_best_of_what_the_disk_proves(
    stored: int, snapshots: tuple[OffsetAndEpoch, ...], expected: int
) -> None:
    """The log start, a checkpoint within the log, and what was stored; never beyond the log."""
    node, output = started(**{**TRIMMED, "snapshots": snapshots, "high_watermark": stored})
    assert node.high_watermark == expected
    assert HighWatermarkAdvanced(expected) in output.progress


def test_a_checkpoint_below_what_is_committed_does_not_replace_the_log() -> None:
    """Method: one of another history, at an offset below the stored high watermark; and one that
    lies below the log start alone."""
    for stored, other in ((5, OffsetAndEpoch(4, 9)), (0, OffsetAndEpoch(3, 9))):
        state = {**TRIMMED, "snapshots": (OffsetAndEpoch(4, 2), other), "high_watermark": stored}
        if stored:
            state["log_start"], state["epochs"] = LOG_BEGINNING, WHOLE["epochs"]
            state["snapshots"] = (other,)
        node, _ = started(**state)
        assert node.log_end == OffsetAndEpoch(6, 3)


def test_a_disqualified_disk_is_reported_at_every_start() -> None:
    election = ElectionState(3, disqualified="met a quorum")
    node, output = started(**{**WHOLE, "election": election})
    (event,) = (each for each in output.events if isinstance(each, VoterDisqualified))
    assert (event.replica, event.epoch, event.detail) == (key(1), 3, "met a quorum")
    assert not node.is_voter
    _, output = started(**WHOLE)
    assert not [each for each in output.events if isinstance(each, VoterDisqualified)]


def test_a_node_that_follows_from_the_start_knows_where_its_leader_is() -> None:
    _, output = started(**{**WHOLE, "election": ElectionState(3, 2)})
    reported = [each for each in output.progress if isinstance(each, LeaderEndpoints)]
    assert reported == [LeaderEndpoints(key(2), tuple(each.address for each in voter(2).endpoints))]


def test_a_node_that_follows_from_the_start_names_its_leader() -> None:
    _, output = started(**{**WHOLE, "election": ElectionState(3, 2)})
    changes = [each for each in output.progress if isinstance(each, LeadershipChanged)]
    assert changes == [LeadershipChanged(2, 3, is_leader=False, can_write=False)]


def test_a_restarted_leader_names_nobody() -> None:
    _, output = started(**{**WHOLE, "election": ElectionState(3, 1, key(1))})
    changes = [each for each in output.progress if isinstance(each, LeadershipChanged)]
    assert changes == [LeadershipChanged(-1, 3, is_leader=False, can_write=False)]
    assert not [each for each in output.progress if isinstance(each, LeaderEndpoints)]


@pytest.mark.parametrize(("offset", "is_kept"), [(7, True), (6, False)])
def test_a_download_is_continued_if_the_log_needs_it(offset: int, is_kept: bool) -> None:
    part = PartialDownload(SnapshotId(offset, 3), 70)
    node, output = started(**{**WHOLE, "download": part})
    assert node.is_downloading is is_kept
    assert (AbandonDownload(part.snapshot_id) in output.persist) is not is_kept


def test_without_a_download_on_disk_there_is_none() -> None:
    node, output = started(**WHOLE)
    assert not node.is_downloading
    assert not [each for each in output.persist if isinstance(each, AbandonDownload)]


@pytest.mark.parametrize("left_out", [(), (2,), (2, 3)])
def test_bootstrap_voters_that_the_operator_gave_up_are_not_waited_for(
    left_out: tuple[NodeId, ...],
) -> None:
    state = {
        **WHOLE,
        "election": ElectionState(),
        "log_end": LOG_BEGINNING,
        "epochs": (),
        "bootstrap_without": left_out,
    }
    node, _ = started(**state)
    waiting = [each for each in (2, 3) if each not in left_out]
    assert f"bootstrap voters {waiting} " in node.why_not_bootstrapped


@pytest.mark.parametrize("end", [0, 1, 6])
def test_a_restarted_relay_gives_its_observers_time_to_return(end: int) -> None:
    """Unless its log is empty: then it never served anybody."""
    now_ms = 10_000
    state = {
        **WHOLE,
        "log_end": OffsetAndEpoch(end, 1 if end else 0),
        "epochs": (EpochStart(1, 0),) if end else (),
    }
    node, _ = started(relays=RelayPlan(serves=True), now_ms=now_ms, **state)
    relay = node._core.relay
    assert relay is not None
    assert relay.silent_until_ms == (now_ms + QuorumConfig().observer_session_ms if end else 0)


def test_a_vote_floor_outlives_an_election_file_that_is_older_than_the_log() -> None:
    floor = OffsetAndEpoch(9, 3)
    disk = replace(disk_with("1:a 3:b"), election=ElectionState(1, 2, key(2), floor))
    cluster = CoreCluster(disks={1: disk})
    assert cluster.members[1].disk.election == ElectionState(3, vote_floor=floor)


@pytest.mark.parametrize(("voters", "deadline_ms"), [((1,), 0), ((1, 2, 3), 1)])
def test_only_a_lone_voter_campaigns_without_a_wait(
    voters: tuple[NodeId, ...], deadline_ms: int
) -> None:
    """Method: a follower of a leader that is not itself, and one without a leader."""
    state = {**WHOLE, "voters": (VotersAt(-1, tuple(map(voter, voters))),)}
    for leader in (-1, voters[-1]):
        node, _ = started(**{**state, "election": ElectionState(3, leader)})
        assert (node.epoch > 3) == (deadline_ms == 0)
