"""The replicas that a relay serves, and when; the subtree state that it keeps and reports."""

from __future__ import annotations

import random
from typing import Any

import pytest

from quorum.config import QuorumConfig
from quorum.core.contract.local_events import LogVerified, RemoveVoter, SnapshotRemoved
from quorum.core.contract.output import Output
from quorum.core.messages.chain_messages import ChainDigestRequest
from quorum.core.messages.fetch_messages import (
    FetchRequest,
    FetchResponse,
    Subtree,
)
from quorum.core.messages.received_records import ReceivedRecords, VotersAt
from quorum.core.messages.snapshot_messages import (
    FetchSnapshotRequest,
    FetchSnapshotResponse,
    ServeChunk,
)
from quorum.core.state.timers import Timer
from quorum.core.state.upstream import RelayPlan
from quorum.errors import ErrorCode
from quorum.types import EpochStart, NodeId, OffsetAndEpoch
from simulation.harness import arrival
from simulation.harness.core_disk import Disk
from tests.support.core_cluster import CLUSTER, CoreCluster, Member
from tests.support.core_disk import disk_with, key, voter
from tests.support.relay_node import WAIT_MS, RelayNode, answers
from tests.support.wire_node import WireNode

SHORT = QuorumConfig(observer_session_ms=3_000)
SNAPSHOT = OffsetAndEpoch(2, 1)


def trimmed() -> Disk:
    """Records 2 and 3 behind a checkpoint of the rest."""
    return disk_with(
        "1:c 1:d", start=SNAPSHOT, epoch=1, leader=1, snapshots={SNAPSHOT: 40}, high_watermark=2
    )


def errors(given: list[tuple[int, FetchResponse]]) -> list[ErrorCode]:
    return [answer.error for _, answer in given]


def ask_chunk(relay: RelayNode, **fields: Any) -> FetchSnapshotResponse | ServeChunk:
    values = {"replica": key(8), "snapshot_id": SNAPSHOT, "position": 4, "max_bytes": 10, **fields}
    request = FetchSnapshotRequest(5, CLUSTER, epoch=1, **values)
    (sent,) = relay.node.receive(relay.now_ms, values["replica"].id, request).immediate
    assert isinstance(sent.message, FetchSnapshotResponse | ServeChunk)
    return sent.message


def compare(relay: RelayNode, offset: int, *, theirs: bytes, ours: bytes) -> Output:
    """An observer's Fetch with the digest of its log up to there."""
    asked = FetchRequest(
        1, CLUSTER, key(8), 1, offset, 1, high_watermark=3, max_wait_ms=WAIT_MS, digest=theirs
    )
    return relay.node.receive(relay.now_ms, 8, arrival.received(asked, own_digest=ours))


def test_a_relay_that_became_a_voter_serves_no_observer() -> None:
    """Its log above the high watermark counts now, and it may come to lead."""
    relay = RelayNode(voters=(1, 2, 7))
    assert errors(relay.ask(fetch_offset=1)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert relay.node.tree().downstream == ()


class LedByRelay(CoreCluster):
    """Node 1 is a relay as well."""

    def _member(self, node_id: NodeId, disk: Disk) -> Member:
        raft = WireNode(
            config=self.config, cluster_id=CLUSTER, me=key(node_id), rng=random.Random(node_id),
            bootstrap=self.bootstrap, relays=RelayPlan(serves=node_id == 1),
        )  # fmt: skip
        return Member(raft, disk, self)


def test_a_relay_that_leads_serves_as_the_leader_also_while_it_removes_itself() -> None:
    """Goal: the removal can be committed. Method: it votes no longer, and leads until then."""
    cluster = LedByRelay(config=QuorumConfig(append_delay_ms=0, high_watermark_delay_ms=0))
    cluster.elect(1)
    cluster.settle()
    removal = RemoveVoter(7, key(1))
    cluster.call(1, lambda node: node.on_local_event(cluster.now_ms, removal))
    assert not cluster[1].is_voter
    cluster.settle()
    assert [each.key.id for each in cluster[2].voters] == [2, 3]
    assert cluster[2].high_watermark == cluster[2].log_end_offset


def test_a_relay_without_a_leader_serves_no_observer() -> None:
    """Method: a fresh one, asked in the epoch before the first, just after its start."""
    relay = RelayNode(disk=Disk(), now_ms=0, has_contact=False)
    assert relay.node.epoch == 0
    given = relay.ask(epoch=0, fetch_offset=0, last_fetched_epoch=0, high_watermark=0)
    assert errors(given) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_a_relay_without_a_response_in_this_epoch_serves_no_observer() -> None:
    relay = RelayNode(has_contact=False)
    assert errors(relay.ask(fetch_offset=1)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_a_relay_that_downloads_a_checkpoint_serves_no_observer() -> None:
    """Its log is about to be replaced. Those that wait are refused as well."""
    relay = RelayNode()
    assert relay.ask() == []
    offered = FetchResponse(
        relay.fetch.request_id, ErrorCode.NONE, 1, 1, 3, snapshot_id=OffsetAndEpoch(30, 1)
    )
    output = relay.node.receive(relay.now_ms, 1, offered)
    assert relay.node.is_downloading
    refused = [each.message for each in output.immediate if each.to == 8]
    assert [each.error for each in refused if isinstance(each, FetchResponse)] == [
        ErrorCode.NOT_LEADER_OR_FOLLOWER
    ]
    assert errors(relay.ask(2, fetch_offset=1)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]


def test_an_observer_may_have_several_requests_waiting() -> None:
    """The bound for one replica is for a leader's voters; a relay's is over all."""
    relay = RelayNode(config=QuorumConfig(held_fetches_max=100))
    for offset in (3, 4):
        assert [relay.ask(10 * offset + each, fetch_offset=offset) for each in range(6)] == [[]] * 6
    assert len(relay.after(WAIT_MS)) == 12


def test_an_observer_that_goes_on_fetching_is_not_forgotten() -> None:
    relay = RelayNode(config=SHORT)
    for number in range(5):
        relay.ask(number, fetch_offset=1)
        relay.after(1_000)
        relay.fetch_answered(3)
    assert [each.key for each in relay.node.tree().downstream] == [key(8)]


def test_logs_are_compared_up_to_the_high_watermark_only() -> None:
    """What lies above may still be cut, here or there. Method: another digest below and above."""
    relay = RelayNode()
    assert compare(relay, 4, theirs=b"t", ours=b"o").immediate == []
    (sent,) = compare(relay, 3, theirs=b"t", ours=b"o").immediate
    assert isinstance(sent.message, FetchResponse)
    assert sent.message.error is ErrorCode.DIGEST_MISMATCH


def test_a_relay_only_reads_its_own_files_again_when_an_observer_differs() -> None:
    """The observer asks the leader next; no digest of an observer decides anything here."""
    relay = RelayNode()
    compare(relay, 3, theirs=b"t", ours=b"o")
    output = relay.node.on_local_event(relay.now_ms, LogVerified(0))
    later = relay.node.tick(relay.now_ms + 1_000)
    sent = [each.message for each in (*output.immediate, *later.immediate)]
    assert [each for each in sent if isinstance(each, ChainDigestRequest)] == []
    assert relay.node.chain.resolution is None


def test_the_ages_of_an_answer_begin_at_nothing() -> None:
    """Method: the leader's word of this very moment, which is the first one of the clock."""
    relay = RelayNode(now_ms=0)
    relay.fetch_answered(3, age_ms=0)
    ((_, answer),) = relay.ask(fetch_offset=1)
    assert (answer.leader_age_ms, answer.contact_age_ms) == (0, 0)


def test_below_its_log_a_relay_without_a_checkpoint_gives_one_answer() -> None:
    relay = RelayNode(disk=trimmed())
    ((_, answer),) = relay.ask(fetch_offset=1)
    assert (answer.error, answer.snapshot_id) == (ErrorCode.NONE, SNAPSHOT)
    relay.node.on_local_event(relay.now_ms, SnapshotRemoved(SNAPSHOT))
    assert errors(relay.ask(2, fetch_offset=1)) == [ErrorCode.SNAPSHOT_NOT_FOUND]


def test_a_relay_serves_its_own_checkpoint_and_needs_the_log_behind_it() -> None:
    """The observer counts as one that needs what comes after the checkpoint."""
    relay = RelayNode(disk=trimmed(), config=SHORT)
    chunk = ask_chunk(relay)
    assert isinstance(chunk, ServeChunk)
    assert (chunk.leader_id, chunk.epoch, chunk.snapshot_id) == (1, 1, SNAPSHOT)
    assert (chunk.position, chunk.bytes_max) == (4, 10)
    for _ in range(4):
        relay.after(1_000)
        relay.fetch_answered(3)
        ask_chunk(relay)
    assert relay.node.tree().subtree_low == SNAPSHOT.offset
    assert not relay.node.tree().is_low_provisional


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"snapshot_id": OffsetAndEpoch(3, 1)}, ErrorCode.SNAPSHOT_NOT_FOUND),
        ({"position": 40}, ErrorCode.POSITION_OUT_OF_RANGE),
        ({"replica": key(2)}, ErrorCode.INELIGIBLE_REPLICA),
    ],
)
def test_a_refused_chunk_is_answered_once_and_its_asker_not_known(
    fields: dict[str, Any], error: ErrorCode
) -> None:
    relay = RelayNode(disk=trimmed())
    answer = ask_chunk(relay, **fields)
    assert isinstance(answer, FetchSnapshotResponse)
    assert answer.error is error
    assert relay.node.tree().downstream == ()


def test_what_an_observer_reports_of_those_below_it_is_reported_on() -> None:
    relay = RelayNode()
    relay.ask(fetch_offset=3, subtree=Subtree(1, 2, ((20, 8), (21, 20))))
    (view,) = relay.node.tree().downstream
    assert view.subtree == Subtree(1, 2, ((20, 8), (21, 20)))
    assert relay.node.tree().subtree_low == 1 or relay.node.tree().is_low_provisional


def fired(relay: RelayNode) -> dict[Timer, int]:
    """Timers of relays, as often as they have fired."""
    of_relays = (Timer.RELAY_AGE, Timer.RELAY_UPKEEP, Timer.OBSERVER_SESSION)
    return {each: relay.node.timers_fired[each] for each in of_relays}


def test_who_waits_is_refused_when_the_relay_becomes_a_voter() -> None:
    relay = RelayNode()
    assert relay.ask() == []
    record = VotersAt(4, (voter(1), voter(2), voter(7)))
    records: Any = ReceivedRecords(4, 5, (EpochStart(1, 4),), (record,), b"")
    answer = FetchResponse(
        relay.fetch.request_id, ErrorCode.NONE, 1, 1, 3, records=records, contact_age_ms=0
    )
    output = relay.node.receive(relay.now_ms, 1, answer)
    assert relay.node.is_voter
    assert [answer.error for _, answer in answers(output)] == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert fired(relay)[Timer.RELAY_AGE] == 0


def test_a_held_fetch_is_answered_when_its_epoch_ends() -> None:
    relay = RelayNode()
    assert relay.ask() == []
    newer = FetchResponse(relay.fetch.request_id, ErrorCode.FENCED_LEADER_EPOCH, 2, 2)
    output = relay.node.receive(relay.now_ms, 1, newer)
    assert relay.node.epoch == 2
    assert [answer.error for _, answer in answers(output)] == [ErrorCode.FENCED_LEADER_EPOCH]


def test_a_relay_answers_held_fetches_when_its_leader_is_silent_for_too_long() -> None:
    config = QuorumConfig(relay_age_max_ms=300)
    relay = RelayNode(config=config)
    confirmed_ms = relay.now_ms
    relay.now_ms += 200
    asked = FetchRequest(1, CLUSTER, key(8), 1, 3, 1, high_watermark=3, max_wait_ms=WAIT_MS)
    output = relay.node.receive(relay.now_ms, 8, asked)
    assert output.next_deadline_ms == confirmed_ms + config.relay_age_max_ms + 1
    assert fired(relay)[Timer.RELAY_AGE] == 0
    assert relay.after(100) == []
    assert errors(relay.after(1)) == [ErrorCode.NOT_LEADER_OR_FOLLOWER]
    assert fired(relay)[Timer.RELAY_AGE] == 1


def test_upkeep_is_for_those_below_and_forgets_them_once() -> None:
    """Method: a relay without observers; one whose only observer falls silent."""
    relay = RelayNode(config=SHORT)
    for _ in range(3):
        relay.after(1_000)
        relay.fetch_answered(3)
    assert set(fired(relay).values()) == {0}
    relay.ask(fetch_offset=1)
    assert relay.node.tree().subtree_low == 1
    relay.ask(2, fetch_offset=3)
    assert relay.node.tree().subtree_low == 1, "it is counted anew with the next upkeep"
    relay.after(1_000)
    assert relay.node.tree().subtree_low == 3
    assert fired(relay)[Timer.RELAY_UPKEEP] == 1
    relay.fetch_answered(3)
    for _ in range(5):
        relay.after(1_000)
        relay.fetch_answered(3)
    assert relay.node.tree().subtree_low == -1
    assert fired(relay)[Timer.OBSERVER_SESSION] == 1


def test_who_waits_is_refused_if_the_relay_has_come_to_fetch_through_it() -> None:
    """Goal: no loop of relays. Method: the next answer from above names the one that waits."""
    relay = RelayNode(path=(key(6),))
    assert relay.ask() == []
    relay.path = (key(8),)
    relay.fetch_answered(3)
    assert errors(relay.after(WAIT_MS)) == [ErrorCode.INELIGIBLE_REPLICA]
