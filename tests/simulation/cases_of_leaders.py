"""Stub clusters whose leaders, voters or disks break a rule of leadership."""

from __future__ import annotations

from types import SimpleNamespace

from quorum.control import encode_control_batch
from quorum.control_records import ControlRecord, LeaderChange, Origin, Voters
from quorum.core.contract.output import SaveElectionState, Truncate
from quorum.core.messages.epoch_messages import EndQuorumEpochRequest, EndQuorumEpochResponse
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.read_messages import ReadPositionRequest, ReadPositionResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.core.messages.voter_messages import UpdateVoterRequest
from quorum.core.state.read_rounds import ReadRounds
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.roles import Leader
from quorum.errors import ErrorCode
from quorum.types import LOG_BEGINNING, ElectionState, Endpoint, OffsetAndEpoch, Voter
from simulation.environment import endpoints_of
from simulation.harness.arrival import arrived
from simulation.operator import asked
from tests.support.stub_cluster import Stage, key_of

LONG_MS = 100_000


def _elect(stage: Stage, leader: int = 1, epoch: int = 1) -> None:
    state = ElectionState(epoch, leader, key_of(leader))
    stage.write(leader, SaveElectionState(state))
    for node_id in (1, 2, 3):
        if node_id != leader:
            stage.write(node_id, SaveElectionState(ElectionState(epoch, leader)))
            stage.step(node_id, epoch=epoch)
    stage.step(leader, is_leader=True, epoch=epoch)


def _fetch(stage: Stage, node_id: int, offset: int = 0, *, number: int = 7) -> FetchRequest:
    """A Fetch that leaves for node 1 and arrives."""
    epoch = 1 if offset else 0
    request = FetchRequest(number, "c", key_of(node_id), 1, offset, epoch)
    stage.run_observer.sent(node_id, 1, request)
    stage.run_observer.received(1, node_id, arrived(request))
    return request


def _answer(stage: Stage, node_id: int, *, number: int = 7) -> None:
    """Node 1 answers as the leader of epoch 1, and that arrives."""
    response = FetchResponse(number, ErrorCode.NONE, 1, 1)
    stage.run_observer.sent(1, node_id, response)
    stage.run_observer.received(node_id, 1, response)


def read_on_an_old_echo(stage: Stage) -> None:
    _elect(stage)
    _fetch(stage, 2)
    stage.run_observer.read_confirmed(1, stage.run_observer.read_begins(), 0)


def position_on_an_old_echo(stage: Stage) -> None:
    _elect(stage)
    _fetch(stage, 2)
    stage.run_observer.sent(3, 1, ReadPositionRequest(9, "c", key_of(3), 1))
    stage.run_observer.sent(1, 3, ReadPositionResponse(9, ErrorCode.NONE, 1, 1, 0))


def _lead_with(stage: Stage, *records: ControlRecord, base: int) -> None:
    data = encode_control_batch(list(records), base_offset=base, epoch=1, timestamp=0)
    stage.append_batch(1, data, 1)


def change_on_open_ground(stage: Stage) -> None:
    _elect(stage)
    _lead_with(stage, LeaderChange(1, (1, 2, 3), (1, 2)), base=0)
    _lead_with(stage, Voters((Voter(key_of(1)), Voter(key_of(2)))), base=1)


def two_open_changes(stage: Stage) -> None:
    _elect(stage)
    _lead_with(stage, LeaderChange(1, (1, 2, 3), (1, 2)), base=0)
    stage.replicas[1].node.high_watermark = 1
    _lead_with(stage, Voters((Voter(key_of(1)), Voter(key_of(2)))), base=1)
    _lead_with(stage, Voters((Voter(key_of(1)),)), base=2)


def stranger_moves_a_voter(stage: Stage) -> None:
    _elect(stage)
    _lead_with(stage, LeaderChange(1, (1, 2, 3), (1, 2)), base=0)
    moved = Voter(key_of(2), (Endpoint("CONTROLLER", "stranger", 1),))
    stage.run_observer.received(
        1, 2, arrived(UpdateVoterRequest(7, "c", moved, 1), is_proven=False)
    )
    stage.replicas[1].node.high_watermark = 1
    _lead_with(stage, Voters((Voter(key_of(1)), moved, Voter(key_of(3)))), base=1)


def _commit_voters(stage: Stage, *after: Voter, origin: Origin | None) -> None:
    stage.commit_voters(Voters(tuple(Voter(key_of(each)) for each in (1, 2, 3))))
    stage.commit_voters(Voters(after, removed=(key_of(2),), origin=origin), base=1)


def voters_change_without_a_name(stage: Stage) -> None:
    _commit_voters(stage, Voter(key_of(1)), Voter(key_of(3)), origin=None)


def another_change_is_named(stage: Stage) -> None:
    _commit_voters(stage, Voter(key_of(1)), Voter(key_of(3)), origin=asked("remove", 3))


def _transfer(stage: Stage, origin: Origin | None) -> None:
    """Node 2 hands over to node 1, which then writes a leader change record with ``origin``."""
    request = EndQuorumEpochRequest(
        7, "c", key_of(2), 0, (key_of(1),), campaign_now=True, origin=asked("transfer from", 2)
    )
    stage.run_observer.sent(2, 1, request)
    stage.run_observer.received(1, 2, arrived(request))
    stage.run_observer.sent(1, 2, EndQuorumEpochResponse(7, ErrorCode.NONE, 2, 0))
    _elect(stage)
    _lead_with(stage, LeaderChange(1, (1, 2, 3), (1, 2), origin=origin), base=0)


def transfer_is_not_named(stage: Stage) -> None:
    _transfer(stage, None)


def election_names_a_transfer(stage: Stage) -> None:
    _elect(stage)
    made_up = asked("transfer from", 2)
    _lead_with(stage, LeaderChange(1, (1, 2, 3), (1, 2), origin=made_up), base=0)


def transfer_is_named(stage: Stage) -> None:
    _transfer(stage, asked("transfer from", 2))


def leads_on_a_hung_disk(stage: Stage) -> None:
    _elect(stage)
    stage.append(1, 0, 1, durable=False)
    for _ in range(3):
        stage.now_ms += LONG_MS
        _fetch(stage, 2)
        _answer(stage, 2)


def leads_silent(stage: Stage) -> None:
    _elect(stage)
    for _ in range(4):
        stage.now_ms += LONG_MS
        _answer(stage, 2)


def votes_against_its_leader(stage: Stage) -> None:
    _elect(stage)
    _fetch(stage, 2)
    _answer(stage, 2)
    pre_vote = VoteRequest(8, "c", key_of(3), key_of(2), 1, LOG_BEGINNING, pre_vote=True)
    stage.run_observer.sent(3, 2, pre_vote)
    stage.run_observer.sent(2, 3, VoteResponse(8, ErrorCode.NONE, 1, 1, granted=True))


def empty_disk_votes(stage: Stage) -> None:
    stage.run_observer.stopped(2)
    stage.run_observer.reformatted(2, is_empty=True)
    stage.open(2)
    request = VoteRequest(8, "c", key_of(2), key_of(3), 0, LOG_BEGINNING, pre_vote=True)
    stage.run_observer.sent(2, 3, request)


def regression_is_served(stage: Stage) -> None:
    _elect(stage)
    for node_id in (1, 2):
        stage.append(node_id, 0, 1)
    _fetch(stage, 2, 1, number=7)
    _answer(stage, 2, number=7)
    _fetch(stage, 2, 0, number=8)
    _answer(stage, 2, number=8)


def copy_of_an_old_fetch_is_served(stage: Stage) -> None:
    """The request arrived before the one with which its sender acknowledged more."""
    _elect(stage)
    for node_id in (1, 2):
        stage.append(node_id, 0, 1)
    _fetch(stage, 2, 0, number=7)
    _answer(stage, 2, number=7)
    _fetch(stage, 2, 0, number=7)
    _fetch(stage, 2, 1, number=8)
    _answer(stage, 2, number=8)
    _answer(stage, 2, number=7)


def old_fetch_of_a_new_voter_is_served(stage: Stage) -> None:
    """It arrived while its sender was an observer, whose acknowledgements commit nothing."""
    _elect(stage)
    for node_id in (1, 2):
        stage.append(node_id, 0, 1)
    _fetch(stage, 2, 1, number=7)
    _answer(stage, 2, number=7)
    node = stage.replicas[1].node
    voters, node.voters = node.voters, tuple(each for each in node.voters if each.key.id != 2)
    _fetch(stage, 2, 0, number=8)
    node.voters = voters
    _answer(stage, 2, number=8)


def served_another_history(stage: Stage) -> None:
    _elect(stage)
    for node_id in (1, 2):
        stage.append(node_id, 0, 1)
    request = FetchRequest(7, "c", key_of(2), 1, 1, 1, digest=b"another")
    stage.run_observer.received(1, 2, arrived(request))
    _answer(stage, 2)


def compared_without_a_digest(stage: Stage) -> None:
    """A Fetch with an equal digest, one without a digest, and what the leader reports of each."""
    for node_id in (1, 2):
        for offset in (0, 1):
            stage.append(node_id, offset, 1)
    progress = ReplicaProgress(key_of(2), is_voter=True, live_since_ms=0)
    reads = ReadRounds(1, 0)
    leader = Leader(epoch_start=0, granting=(), since_ms=0, reads=reads, remote={2: progress})
    stage.replicas[1].node._core = SimpleNamespace(role=leader, election=ElectionState(1, 1))
    proven = FetchRequest(7, "c", key_of(2), 1, 1, 1, digest=stage.folds[1])
    stage.run_observer.received(1, 2, arrived(proven))
    progress.compared_end = 1
    unproven = FetchRequest(8, "c", key_of(2), 1, 2, 1)
    stage.run_observer.received(1, 2, arrived(unproven))
    progress.compared_end = 2
    stage.run_observer.received(1, 2, arrived(unproven))


def epoch_after_the_last(stage: Stage) -> None:
    stage.step(1, epoch=2**31 - 2)
    stage.step(1, epoch=2**31 - 1)


def _diverge(stage: Stage, offset: int, epoch: int) -> None:
    """Leader 1 holds epoch 1 up to 2 and epoch 3 up to 3, node 2 has epoch 2 where that is 1."""
    _elect(stage, epoch=3)
    for node_id, epochs in ((1, (1, 1, 3)), (2, (1, 2, 2))):
        for at, each in enumerate(epochs):
            stage.append(node_id, at, each)
    point = OffsetAndEpoch(offset, epoch)
    response = FetchResponse(7, ErrorCode.NONE, 1, 3, diverging=point)
    stage.run_observer.sent(1, 2, response)
    stage.run_observer.received(2, 1, response)


def diverges_within_an_epoch(stage: Stage) -> None:
    _diverge(stage, 1, 1)


def later_epoch_is_kept(stage: Stage) -> None:
    _diverge(stage, 2, 1)
    stage.write(2, Truncate(2))


def too_much_of_the_epoch_is_kept(stage: Stage) -> None:
    for offset in (0, 1, 2):
        stage.append(3, offset, 1)
    response = FetchResponse(7, ErrorCode.NONE, 1, 3, diverging=OffsetAndEpoch(1, 1))
    stage.run_observer.received(3, 1, response)
    stage.write(3, Truncate(2))


def stranger_names_a_listener(stage: Stage) -> None:
    """Node 2 has the leader's record, and knows a listener that neither it nor the leader named."""
    replica = stage.replicas[2]
    recorded, own = endpoints_of(1)
    replica.node.voters = (Voter(key_of(1), (recorded,)), *replica.node.voters[1:])
    for known in ((recorded,), (recorded, own), (recorded, Endpoint("CLIENT", "stranger", 2))):
        replica.driver.addresses.leader = (1, tuple(each.address for each in known))
        stage.step(2)


CASES = (
    (read_on_an_old_echo, "read-rounds"),
    (position_on_an_old_echo, "read-rounds"),
    (change_on_open_ground, "change-barrier"),
    (two_open_changes, "change-barrier"),
    (stranger_moves_a_voter, "proven-changes"),
    (stranger_names_a_listener, "leader-addresses"),
    (voters_change_without_a_name, "named-changes"),
    (another_change_is_named, "named-changes"),
    (transfer_is_not_named, "named-changes"),
    (election_names_a_transfer, "named-changes"),
    (leads_on_a_hung_disk, "hung-disk"),
    (leads_silent, "leader-contact"),
    (votes_against_its_leader, "leader-stickiness"),
    (empty_disk_votes, "second-incarnation"),
    (regression_is_served, "regressions"),
    (served_another_history, "same-history"),
    (compared_without_a_digest, "compared-ends"),
    (epoch_after_the_last, "epochs"),
    (diverges_within_an_epoch, "lineage-cuts"),
    (later_epoch_is_kept, "lineage-cuts"),
    (too_much_of_the_epoch_is_kept, "lineage-cuts"),
)
INTACT = (
    copy_of_an_old_fetch_is_served,
    old_fetch_of_a_new_voter_is_served,
    transfer_is_named,
)
"""Cases that look like a regression and are none."""
