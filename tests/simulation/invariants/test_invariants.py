"""Every standing invariant can fail: a witness is shown a cluster that breaks just that one."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from quorum.batch import encode_batch
from quorum.core.messages import BeginQuorumEpochRequest, FetchRequest, VoteRequest
from quorum.core.output import AdvanceLogStart, Append, Effect, SaveElectionState, Truncate
from quorum.runtime.ports import WriteGroup
from quorum.types import LOG_BEGINNING, ElectionState, OffsetAndEpoch, ReplicaKey, Voter
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, Provenance
from statemachine.records import FeatureLevelRecord
from tests.simulation.invariants.mirror import split
from tests.simulation.invariants.table import ALL, watch
from tests.simulation.invariants.violation import Violation
from tests.simulation.invariants.witness import Witness


class Stage:
    """A cluster of three cardboard replicas that do whatever a test says."""

    def __init__(self) -> None:
        self.witness: Witness = watch()
        self.replicas: dict[int, Any] = {}
        self._ticket = 0
        for node_id in (1, 2, 3):
            self.open(node_id)

    def open(self, node_id: int, election: ElectionState | None = None, log: bytes = b"") -> None:
        """Begin a life of a node, with what it found on its disk."""
        end = len(log) and _end_of(log)
        stores = SimpleNamespace(
            log=SimpleNamespace(
                start=LOG_BEGINNING, end=OffsetAndEpoch(end, 0), read=lambda *_: log
            ),
            snapshots=SimpleNamespace(list=lambda: ()),
            state=SimpleNamespace(log_start=LOG_BEGINNING, election=election or ElectionState()),
        )
        node = SimpleNamespace(
            epoch=0,
            high_watermark=0,
            log_end_offset=end,
            log_start=LOG_BEGINNING,
            is_leader=False,
            voters=tuple(Voter(_key(each)) for each in (1, 2, 3)),
        )
        replica: Any = SimpleNamespace(
            key=_key(node_id),
            stores=stores,
            node=node,
            controller=SimpleNamespace(image=EMPTY_IMAGE),
        )
        self.replicas[node_id] = replica
        self.witness.opened(replica)

    def write(self, node_id: int, effect: Effect, *, durable: bool = True) -> None:
        """Hand an effect to a node's disk, and complete it unless told otherwise."""
        self._ticket += 1
        group = WriteGroup(self._ticket, (effect,))
        self.witness.submitted(node_id, group)
        self.replicas[node_id].node.log_end_offset = self.witness.nodes[node_id].written.end_offset
        if durable:
            self.witness.persisted(node_id, [group])

    def append(self, node_id: int, offset: int, epoch: int, value: bytes = b"v", **kw: Any) -> None:
        """One record at ``offset``."""
        durable = kw.pop("durable", True)
        data = _batch(offset, epoch, value, **kw)
        self.write(node_id, Append(offset, offset + 1, epoch, data), durable=durable)

    def step(self, node_id: int, **state: Any) -> None:
        """Let the node be as given, and look at it."""
        for name, value in state.items():
            setattr(self.replicas[node_id].node, name, value)
        self.witness.stepped(node_id)

    def commit(self, *node_ids: int, end_offset: int, epoch: int) -> None:
        """Nodes learn, one after the other, that everything below is committed."""
        for node_id in node_ids:
            self.step(node_id, high_watermark=end_offset, epoch=epoch)


def _key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, bytes([node_id]) * 16)


def _batch(offset: int, epoch: int, value: bytes = b"v", **kw: Any) -> bytes:
    return encode_batch([value], base_offset=offset, epoch=epoch, timestamp=0, **kw)


def _end_of(log: bytes) -> int:
    return split(log)[-1].end_offset


def _campaign(stage: Stage, node_id: int, epoch: int) -> None:
    stage.witness.sent(
        node_id,
        3,
        VoteRequest(9, "c", _key(node_id), _key(3), epoch, LOG_BEGINNING, pre_vote=False),
    )


def _vote_for(stage: Stage, node_id: int, epoch: int, candidate: int, leader: int = -1) -> None:
    stage.write(node_id, SaveElectionState(ElectionState(epoch, leader, _key(candidate))))


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
    stage.open(1, ElectionState(1, voted=_key(1)))
    _campaign(stage, 1, 1)


def two_histories(stage: Stage) -> None:
    stage.append(1, 0, 1, b"one")
    stage.append(2, 0, 1, b"other")


def a_log_nobody_wrote(stage: Stage) -> None:
    stage.open(1, log=_batch(0, 1))


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


def two_checkpoints(stage: Stage) -> None:
    for node_id in (1, 2):
        stage.append(node_id, 0, 1)
    stage.commit(1, end_offset=1, epoch=1)
    snapshot_id = OffsetAndEpoch(1, 1)
    for node_id, content in ((1, b"one"), (2, b"other")):
        store = stage.replicas[node_id].stores.snapshots
        store.list = lambda: (snapshot_id,)
        store._open = lambda _, content=content: SimpleNamespace(
            size=lambda: len(content), read_at=lambda *_: content, close=lambda: None
        )
        stage.witness.checkpointed(node_id, snapshot_id)


def acknowledged_too_early(stage: Stage) -> None:
    stage.write(1, SaveElectionState(ElectionState(1)))
    stage.append(1, 0, 1, durable=False)
    stage.witness.sent(1, 2, FetchRequest(1, "c", _key(1), 1, 1, 1))


def voted_too_early(stage: Stage) -> None:
    stage.write(1, SaveElectionState(ElectionState(1)))
    _campaign(stage, 1, 1)


def led_too_early(stage: Stage) -> None:
    _vote_for(stage, 1, 1, 1)
    stage.witness.sent(1, 2, BeginQuorumEpochRequest(1, "c", _key(2), _key(1), 1))


def led_before_durable(stage: Stage) -> None:
    stage.step(1, is_leader=True, epoch=1)


def vote_lost(stage: Stage) -> None:
    _vote_for(stage, 1, 1, 2)
    stage.open(1, ElectionState(1))


def records_lost(stage: Stage) -> None:
    stage.append(1, 0, 1)
    stage.open(1)


def applied_twice(stage: Stage) -> None:
    for node_id in (1, 2):
        for offset in (0, 1):
            stage.append(node_id, offset, 1, producer_id=5, producer_epoch=0, base_sequence=7)
    stage.commit(1, end_offset=2, epoch=1)


def acknowledged_uncommitted(stage: Stage) -> None:
    stage.append(1, 0, 1)
    stage.witness.acknowledged(1, 1)


def acknowledged_elsewhere(stage: Stage) -> None:
    for node_id in (1, 2):
        for offset in (0, 1):
            stage.append(node_id, offset, 1, producer_id=5, producer_epoch=0, base_sequence=offset)
    stage.commit(1, end_offset=2, epoch=1)
    stage.witness.acknowledged(1, 2, (5, 0, 0))


def read_too_old(stage: Stage) -> None:
    stage.witness.read_confirmed(1, 3, 2)


def read_too_new(stage: Stage) -> None:
    stage.witness.read_confirmed(1, 0, 2)


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
    (vote_lost, "durable-survives"),
    (records_lost, "durable-survives"),
    (applied_twice, "acknowledged-survives"),
    (acknowledged_uncommitted, "acknowledged-survives"),
    (acknowledged_elsewhere, "acknowledged-survives"),
    (read_too_old, "confirmed-reads"),
    (read_too_new, "confirmed-reads"),
)


@pytest.mark.parametrize(("play", "name"), CASES, ids=lambda case: getattr(case, "__name__", None))
def test_an_invariant_fails_when_its_property_does(
    play: Callable[[Stage], None], name: str
) -> None:
    """Let a cardboard cluster break one property and expect the invariant that states it."""
    with pytest.raises(Violation) as caught:
        play(Stage())

    assert caught.value.name == name, str(caught.value)


def test_every_invariant_has_a_case() -> None:
    """No property without a proof that its check can fail."""
    assert {kind.name for kind in ALL} == {name for _, name in CASES}


def test_a_sound_cluster_passes() -> None:
    """A record that is written, committed, acknowledged and read as it should be."""
    stage = Stage()
    _vote_for(stage, 1, 1, 1, leader=1)
    for node_id in (1, 2, 3):
        stage.append(node_id, 0, 1)
    stage.step(1, is_leader=True, epoch=1, high_watermark=1)
    stage.commit(2, 3, end_offset=1, epoch=1)
    stage.witness.acknowledged(1, 1)
    stage.witness.read_confirmed(1, 1, 1)
    stage.open(1, ElectionState(1, 1, _key(1)), _batch(0, 1))
