"""Every invariant can fail: its observer gets a cluster that breaks just that one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace

import pytest

from quorum.control_records import Voters
from quorum.core.contract.output import (
    AdvanceLogStart,
    ReplaceLogWith,
    SaveElectionState,
    Truncate,
)
from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.vote_messages import VoteRequest
from quorum.types import LOG_BEGINNING, ElectionState, OffsetAndEpoch, Voter
from simulation.harness.arrival import arrived
from simulation.invariants.seen import ReadBegun
from simulation.invariants.table import ALL
from simulation.invariants.violation import Violation
from simulation.operator import asked
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, Provenance
from statemachine.records import (
    FeatureLevelRecord,
    InitProducerRecord,
    ProducerStateRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.simulation import (
    cases_of_disks,
    cases_of_downloads,
    cases_of_images,
    cases_of_leaders,
    cases_of_relays,
)
from tests.support.stub_cluster import Stage, batch_of, key_of


def _campaign(stage: Stage, node_id: int, epoch: int) -> None:
    stage.run_observer.sent(
        node_id,
        3,
        VoteRequest(9, "c", key_of(node_id), key_of(3), epoch, LOG_BEGINNING, pre_vote=False),
    )


def _vote_for(stage: Stage, node_id: int, epoch: int, candidate: int, leader: int = -1) -> None:
    stage.write(node_id, SaveElectionState(ElectionState(epoch, leader, key_of(candidate))))


def two_leaders(stage: Stage) -> None:
    for node_id in (1, 2):
        _vote_for(stage, node_id, 1, node_id, leader=node_id)
        stage.step(node_id, is_leader=True, epoch=1)


def epoch_falls(stage: Stage) -> None:
    stage.step(1, epoch=2)
    stage.step(1, epoch=1)


def durable_epoch_falls(stage: Stage) -> None:
    stage.write(1, SaveElectionState(ElectionState(2)))
    stage.write(1, SaveElectionState(ElectionState(1)))


def two_votes(stage: Stage) -> None:
    _vote_for(stage, 1, 1, 2)
    _vote_for(stage, 1, 1, 3)


def two_campaigns(stage: Stage) -> None:
    _vote_for(stage, 1, 1, 1)
    _campaign(stage, 1, 1)
    stage.open(1, ElectionState(1, voted=key_of(1)))
    _campaign(stage, 1, 1)


def two_histories(stage: Stage) -> None:
    stage.append(1, 0, 1, b"one")
    stage.append(2, 0, 1, b"other")


def a_log_nobody_wrote(stage: Stage) -> None:
    stage.open(1, log=batch_of(0, 1))


def two_commits(stage: Stage) -> None:
    for node_id in (1, 2):
        stage.append(node_id, 0, 1, b"one")
    stage.append(3, 0, 2, b"other")
    stage.commit(1, 3, end_offset=1, epoch=1)


def committed_is_cut(stage: Stage) -> None:
    for node_id in (1, 2):
        stage.append(node_id, 0, 1)
    stage.commit(1, end_offset=1, epoch=1)
    stage.write(2, Truncate(0))


def leader_without(stage: Stage) -> None:
    for node_id in (1, 2):
        stage.append(node_id, 0, 1)
    stage.commit(1, end_offset=1, epoch=1)
    _vote_for(stage, 3, 2, 3, leader=3)
    stage.step(3, is_leader=True, epoch=2)


def one_disk_only(stage: Stage) -> None:
    stage.append(1, 0, 1)
    stage.append(2, 0, 1, durable=False)
    stage.commit(1, end_offset=1, epoch=1)


def older_epoch_counted(stage: Stage) -> None:
    _vote_for(stage, 1, 2, 1, leader=1)
    for node_id in (1, 2):
        stage.append(node_id, 0, 1)
    stage.step(1, is_leader=True, epoch=2, high_watermark=1)


def applied_too_far(stage: Stage) -> None:
    stage.append(1, 0, 1)
    stage.replicas[1].controller.image = EMPTY_IMAGE.at(Provenance(1, 1, 0))
    stage.step(1)


def start_without_checkpoint(stage: Stage) -> None:
    stage.replicas[1].stores.log.start = OffsetAndEpoch(5, 1)
    stage.write(1, AdvanceLogStart(OffsetAndEpoch(5, 1)))


def two_images(stage: Stage) -> None:
    position = Provenance(16, 1, 0)
    delta = ImageDelta(EMPTY_IMAGE)
    delta.replay(FeatureLevelRecord(name="metadata.version", feature_level=7))
    for node_id, image in ((1, EMPTY_IMAGE), (2, delta.view())):
        for offset in range(16):
            stage.append(node_id, offset, 1)
        stage.replicas[node_id].controller.image = image.at(position)
    stage.commit(1, 2, end_offset=16, epoch=1)


def two_checkpoints(stage: Stage, *, is_corrupt: bool = False) -> None:
    for node_id in (1, 2):
        stage.append(node_id, 0, 1)
    stage.commit(1, end_offset=1, epoch=1)
    snapshot_id = OffsetAndEpoch(1, 1)
    for node_id, content in ((1, b"one"), (2, b"other")):
        store = stage.replicas[node_id].stores.snapshots
        store.list = lambda: (snapshot_id,)
        store.latest = lambda: snapshot_id
        store._open = lambda _, content=content: SimpleNamespace(
            size=lambda: len(content), read_at=lambda *_: content, close=lambda: None
        )
        stage.run_observer.nodes[node_id].is_corrupt = lambda _, corrupt=is_corrupt: corrupt
        stage.run_observer.checkpointed(node_id, snapshot_id)


def acknowledged_too_early(stage: Stage) -> None:
    stage.write(1, SaveElectionState(ElectionState(1)))
    stage.append(1, 0, 1, durable=False)
    stage.run_observer.sent(1, 2, FetchRequest(1, "c", key_of(1), 1, 1, 1))


def voted_too_early(stage: Stage) -> None:
    stage.write(1, SaveElectionState(ElectionState(1)))
    _campaign(stage, 1, 1)


def led_too_early(stage: Stage) -> None:
    _vote_for(stage, 1, 1, 1)
    stage.run_observer.sent(1, 2, BeginQuorumEpochRequest(1, "c", key_of(2), key_of(1), 1))


def led_before_durable(stage: Stage) -> None:
    stage.step(1, is_leader=True, epoch=1)


def applied_twice(stage: Stage) -> None:
    for node_id in (1, 2):
        for offset in (0, 1):
            stage.append(node_id, offset, 1, producer_id=5, producer_epoch=0, base_sequence=7)
    stage.commit(1, end_offset=2, epoch=1)


def acknowledged_uncommitted(stage: Stage) -> None:
    stage.append(1, 0, 1)
    stage.run_observer.acknowledged(1, 1)


def acknowledged_elsewhere(stage: Stage) -> None:
    for node_id in (1, 2):
        for offset in (0, 1):
            stage.append(node_id, offset, 1, producer_id=5, producer_epoch=0, base_sequence=offset)
    stage.commit(1, end_offset=2, epoch=1)
    stage.run_observer.acknowledged(1, 2, (5, 0, 0))


def read_too_old(stage: Stage) -> None:
    stage.run_observer.read_confirmed(1, ReadBegun(3, 0), 2)


def read_too_new(stage: Stage) -> None:
    stage.run_observer.read_confirmed(1, ReadBegun(0, 0), 2)


def leader_cuts(stage: Stage) -> None:
    _vote_for(stage, 1, 1, 1, leader=1)
    stage.append(1, 0, 1)
    stage.step(1, is_leader=True, epoch=1)
    stage.write(1, Truncate(0))


def leader_loads(stage: Stage) -> None:
    for node_id in (1, 2):
        stage.append(node_id, 0, 1)
    _vote_for(stage, 1, 1, 1, leader=1)
    stage.step(1, is_leader=True, epoch=1)
    stage.write(1, ReplaceLogWith(OffsetAndEpoch(1, 1)))


def _voters(*node_ids: int, removed: tuple[int, ...] = ()) -> Voters:
    keys = tuple(key_of(each) for each in removed)
    origin = asked("remove", removed[-1]) if removed else None
    return Voters(tuple(Voter(key_of(each)) for each in node_ids), removed=keys, origin=origin)


def two_removed_at_once(stage: Stage) -> None:
    stage.commit_voters(_voters(1, 2, 3))
    stage.commit_voters(_voters(1, removed=(2, 3)), base=1)


def removed_is_forgotten(stage: Stage) -> None:
    stage.commit_voters(_voters(1, 2, 3))
    stage.commit_voters(_voters(1, 2, removed=(3,)), base=1)
    stage.commit_voters(_voters(1, 2), base=2)


def node_forgets_removed(stage: Stage) -> None:
    stage.commit_voters(_voters(1, 2, 3))
    stage.replicas[1].node.removed_voters = (key_of(3),)
    stage.commit_voters(_voters(1, 2, removed=(3,)), base=1)
    stage.step(2, high_watermark=2, voters_offset=1)


def command_not_remembered(stage: Stage) -> None:
    for node_id in (1, 2):
        stage.append(node_id, 0, 1, producer_id=5, producer_epoch=0, base_sequence=7)
    delta = ImageDelta(EMPTY_IMAGE)
    delta.replay(ProducerStateRecord(producer_id=5, producer_epoch=0, last_sequence=6))
    stage.replicas[1].controller.image = delta.view().at(Provenance(1, 1, 0))
    stage.commit(1, end_offset=1, epoch=1)


def one_topic_id_twice(stage: Stage) -> None:
    stage.commit_records(TopicRecord("a", b"t" * 16))
    stage.commit_records(TopicRecord("b", b"t" * 16), base=1)


def one_producer_id_twice(stage: Stage) -> None:
    stage.commit_records(InitProducerRecord(7, 0))
    stage.commit_records(InitProducerRecord(7, 0), base=1)


def producer_with_the_fencing_epoch(stage: Stage) -> None:
    stage.commit_records(InitProducerRecord(7, 2**15 - 2))
    stage.commit_records(InitProducerRecord(7, 2**15 - 1), base=1)


def one_broker_epoch_twice(stage: Stage) -> None:
    for base, broker_id in enumerate((1, 2)):
        stage.commit_records(
            RegisterBrokerRecord(broker_id, incarnation_id=b"i" * 16, broker_epoch=5), base=base
        )


def wrong_digest(stage: Stage) -> None:
    stage.folds[1] = b"wrong"
    stage.append_batch(1, batch_of(0, 1), 1, folds=False)


CASES: tuple[tuple[Callable[[Stage], None], str], ...] = (
    (two_leaders, "one-leader"),
    (epoch_falls, "monotone"),
    (durable_epoch_falls, "monotone"),
    (two_votes, "one-vote"),
    (two_campaigns, "one-campaign"),
    (two_histories, "log-matching"),
    (a_log_nobody_wrote, "log-matching"),
    (two_commits, "committed-stays"),
    (committed_is_cut, "committed-stays"),
    (leader_without, "leader-completeness"),
    (one_disk_only, "committed-on-majority"),
    (older_epoch_counted, "committed-on-majority"),
    (applied_too_far, "bounds"),
    (start_without_checkpoint, "log-start-covered"),
    (two_images, "equal-images"),
    (two_checkpoints, "equal-checkpoints"),
    (acknowledged_too_early, "promises"),
    (voted_too_early, "promises"),
    (led_too_early, "promises"),
    (led_before_durable, "promises"),
    (applied_twice, "acknowledged-survives"),
    (acknowledged_uncommitted, "acknowledged-survives"),
    (acknowledged_elsewhere, "acknowledged-survives"),
    (read_too_old, "confirmed-reads"),
    (read_too_new, "confirmed-reads"),
    (leader_cuts, "leader-append-only"),
    (leader_loads, "leader-append-only"),
    (two_removed_at_once, "one-change-at-a-time"),
    (removed_is_forgotten, "tombstones"),
    (node_forgets_removed, "tombstones"),
    (command_not_remembered, "dedupe-table"),
    (one_topic_id_twice, "unique-ids"),
    (one_producer_id_twice, "unique-ids"),
    (producer_with_the_fencing_epoch, "unique-ids"),
    (one_broker_epoch_twice, "broker-epochs"),
    (wrong_digest, "hash-chain"),
    *cases_of_disks.CASES,
    *cases_of_downloads.CASES,
    *cases_of_images.CASES,
    *cases_of_leaders.CASES,
    *cases_of_relays.CASES,
)


@pytest.mark.parametrize(("play", "name"), CASES, ids=lambda case: getattr(case, "__name__", None))
def test_an_invariant_fails_when_its_property_does(
    play: Callable[[Stage], None], name: str
) -> None:
    """Let a stub cluster break one property, and expect that invariant to fail."""
    with pytest.raises(Violation) as caught:
        play(Stage())

    assert caught.value.name == name, str(caught.value)


def test_every_invariant_has_a_case() -> None:
    """No property without a proof that its check can fail."""
    assert {kind.name for kind in ALL} == {name for _, name in CASES}


def test_a_intact_cluster_passes() -> None:
    """A record that is written, committed, acknowledged and read as it should be."""
    stage = Stage()
    _vote_for(stage, 1, 1, 1, leader=1)
    for node_id in (1, 2, 3):
        stage.append(node_id, 0, 1)
    stage.step(1, is_leader=True, epoch=1, high_watermark=1)
    stage.commit(2, 3, end_offset=1, epoch=1)
    stage.run_observer.acknowledged(1, 1)
    begun = stage.run_observer.read_begins()
    stage.write(2, SaveElectionState(ElectionState(1, 1)))
    fetch = FetchRequest(1, "c", key_of(2), 1, 1, 1)
    stage.run_observer.sent(2, 1, fetch)
    stage.run_observer.received(1, 2, arrived(fetch))
    stage.run_observer.read_confirmed(1, begun, 1)
    stage.open(1, ElectionState(1, 1, key_of(1)), batch_of(0, 1))
    run_observer = stage.run_observer
    assert [type(each) for each in run_observer.invariants] == list(ALL)
    started = {node_id: seen.incarnation for node_id, seen in run_observer.nodes.items()}
    assert started == {1: 2, 2: 1, 3: 1}
    assert (run_observer.committed.end_offset, run_observer.acknowledged_end) == (1, 1)
    assert (run_observer.committed_in, run_observer.sent_count) == ([(1, 1)], 1)
    # The same read below an acknowledged write is a violation.
    with pytest.raises(Violation, match="confirmed-reads"):
        run_observer.read_confirmed(1, begun, 0)


def test_a_corrupt_checkpoint_is_not_compared() -> None:
    """The same two files pass where the harness knows that bits have flipped in them."""
    two_checkpoints(Stage(), is_corrupt=True)
    with pytest.raises(Violation, match="equal-checkpoints"):
        two_checkpoints(Stage())


@pytest.mark.parametrize("play", cases_of_leaders.INTACT)
def test_an_old_fetch_may_be_answered_late(play: Callable[[Stage], None]) -> None:
    stage = Stage()
    play(stage)
    assert stage.run_observer.sent_count >= 2, "nothing was evaluated"
