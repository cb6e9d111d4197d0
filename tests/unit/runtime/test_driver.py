"""The driver: what leaves only after the disk, and what listeners hear."""

from __future__ import annotations

from dataclasses import replace

from quorum.batch import scan_batches
from quorum.core.contract.local_events import UpdateVoter
from quorum.core.contract.output import Append, SaveElectionState
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.errors import ErrorCode
from quorum.types import Endpoint, OffsetAndEpoch, ReplicaKey
from simulation.harness.arrival import arrived
from statemachine.commands import ConfigChange, IncrementalAlterConfigs, ResourceType
from tests.support.lone_replica import LoneReplica


def change(value: str) -> IncrementalAlterConfigs:
    return IncrementalAlterConfigs(
        int(ResourceType.BROKER), "", (ConfigChange("quorate.note", value=value),)
    )


def test_a_vote_leaves_only_when_it_is_durable() -> None:
    """Goal: no promise before its ticket. Method: ask for a vote, hold the disk back."""
    bench = LoneReplica(voters=3).boot()
    bench.persist()
    candidate = bench.voters[1].key
    request = VoteRequest(
        5, "cluster", candidate, bench.voters[0].key, 1, OffsetAndEpoch(0, 0), pre_vote=False
    )
    bench.replica.receive(2, arrived(request))
    granted = [m for _, m in bench.sent if isinstance(m, VoteResponse)]
    assert granted == []
    assert any(isinstance(e, SaveElectionState) for g in bench.groups for e in g.effects)
    bench.persist()
    granted = [m for _, m in bench.sent if isinstance(m, VoteResponse)]
    assert [(m.request_id, m.error, m.granted) for m in granted] == [(5, ErrorCode.NONE, True)]
    assert bench.stores.election.load().voted == candidate


def test_a_refusal_needs_no_disk() -> None:
    """Goal: refusals are not promises. Method: a vote request for another receiver."""
    bench = LoneReplica(voters=3).boot()
    bench.persist()
    stranger = ReplicaKey(1, b"\xee" * 16)
    request = VoteRequest(
        6, "other", bench.voters[1].key, stranger, 1, OffsetAndEpoch(0, 0), pre_vote=False
    )
    bench.replica.receive(2, arrived(request))
    assert [m.error for _, m in bench.sent if isinstance(m, VoteResponse)] == [
        ErrorCode.INCONSISTENT_CLUSTER_ID
    ]


def test_an_answer_waits_for_the_disk() -> None:
    """Goal: nothing is acknowledged before it is flushed. Method: one write, disk held back."""
    bench = LoneReplica().boot().lead()
    answers = bench.write(change("a"), persist=False)
    assert [type(e) for g in bench.groups for e in g.effects] == [Append]
    assert answers == []
    bench.persist()
    assert [a.code for a in answers] == [ErrorCode.NONE]
    assert bench.replica.controller.image.provenance.end_offset == answers[0].offset


def test_commands_of_one_turn_become_one_append() -> None:
    """Goal: group commit. Method: three commands, then one turn."""
    bench = LoneReplica().boot().lead()
    answers: list[object] = []
    from quorate.controller.requests import RequestContext

    for value in "abc":
        bench.replica.controller.submit(change(value), RequestContext("x"), answers.append)
    bench.replica.turn()
    assert [len(g.effects) for g in bench.groups] == [1]
    bench.persist()
    assert len(answers) == 3


def test_time_stamps_never_fall_when_the_wall_clock_does() -> None:
    """Goal: stamps rise. Method: step the wall clock back, restart, elect, compare stamps."""
    bench = LoneReplica().boot().lead()
    bench.write(change("a"))
    before = bench.replica.controller.image.provenance.timestamp_ms
    bench.clock.wall_offset_ms = 0
    bench.crash()
    bench.boot().lead()
    assert bench.replica.controller.image.provenance.timestamp_ms >= before


def test_no_write_is_stamped_below_a_change_of_voters_that_is_not_committed() -> None:
    """Goal: stamps rise over control batches. Method: move the voter, set the clock back, write."""
    bench = LoneReplica().boot().lead()
    voter = replace(bench.voters[0], endpoints=(Endpoint("CONTROLLER", "elsewhere", 9009),))
    bench.clock.time_ms += 100
    bench.replica.on_local_event(UpdateVoter(1, voter))
    bench.clock.wall_offset_ms -= 3_600_000
    answers = bench.write(change("a"), persist=False)
    log_start, log_end = bench.stores.state.log_end.offset, bench.replica.node.log_end_offset
    batches = scan_batches(bench.replica.driver.read_records(log_start, 1 << 20, log_end))
    assert [each.is_control for each in batches[-2:]] == [True, False]
    assert [each.max_timestamp for each in batches] == sorted(x.max_timestamp for x in batches)
    bench.persist()
    assert [each.code for each in answers] == [ErrorCode.NONE]
