"""Relays: slots of voters among held Fetches, an observer's source, contents of responses."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from quorum.config import QuorumConfig
from quorum.core.following.relaying import may_go_direct, relay_to_ask
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse, Subtree
from quorum.core.positions.fetch_classification import SERVE, Diverging
from quorum.core.positions.log_view import LogView
from quorum.core.replication.relay_serving import classify_committed
from quorum.core.state.core_state import CoreState
from quorum.core.state.held_fetches import HELD_PER_VOTER_MAX, NEVER_MS, HeldFetch, HeldFetches
from quorum.core.state.relay_table import LINKS_MAX, Relay
from quorum.core.state.replica_progress import ReplicaProgress
from quorum.core.state.upstream import RelayPlan, Upstream
from quorum.types import EpochStart, OffsetAndEpoch
from simulation.harness.core_disk import Disk
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import disk_with, key, voter
from tests.support.wire_node import WireNode

CONFIG = QuorumConfig(relay_patience_ms=1000, relay_retry_ms=5000)


def test_a_crowd_of_observers_does_not_take_the_places_of_voters() -> None:
    """Goal: voters are held however many observers wait. Method: fill up, then let a voter ask."""
    cluster = CoreCluster(config=QuorumConfig(held_fetches_max=3))
    cluster.elect(1)
    cluster.members[2].is_up = cluster.members[3].is_up = False
    cluster.now_ms += cluster.config.fetch_max_wait_ms
    cluster.tick(1)
    end, epoch = cluster[1].log_end_offset, cluster[1].epoch

    def ask(node_id: int, request_id: int) -> int:
        request = FetchRequest(
            request_id, CLUSTER, key(node_id), epoch, end, epoch, end, max_wait_ms=500
        )
        output = cluster.call(1, lambda node: node.receive(cluster.now_ms, node_id, request))
        return sum(isinstance(each.message, FetchResponse) for each in output.immediate)

    crowd = [ask(observer, 1) for observer in range(20, 30)]
    assert crowd.count(1) >= 7
    assert [ask(2, 100 + n) for n in range(HELD_PER_VOTER_MAX)] == [0] * HELD_PER_VOTER_MAX
    assert ask(2, 200) == 1, "of too many, the oldest is answered"
    assert ask(3, 300) == 0, "another voter has places of its own"


def test_every_held_request_comes_out_once() -> None:
    """Goal: nothing is lost when a voter's older request makes room."""
    held = HeldFetches()
    out = []
    for number in range(HELD_PER_VOTER_MAX * 3):
        request = FetchRequest(number, CLUSTER, key(2), 1, 0, 0)
        out += held.hold(HeldFetch(2, request, 100 + number, is_voter=True))
    out += held.take_all()
    assert sorted(each.request.request_id for each in out) == list(range(HELD_PER_VOTER_MAX * 3))


class _Relays:
    """An ``Upstream`` with its clock."""

    def __init__(self) -> None:
        self.now_ms = 10_000
        self.upstream = Upstream((7, 8))

    def failed(self, peer: int) -> None:
        self.upstream.failed(peer, self.now_ms, CONFIG, random.Random(1))


def test_patience_begins_with_the_first_failure_and_ends_with_an_answer() -> None:
    """Goal: the leader is asked between one and two patiences after relays stopped answering."""
    world = _Relays()
    assert world.upstream.direct_from_ms == NEVER_MS
    world.failed(7)
    due = world.upstream.direct_from_ms
    assert 11_000 <= due < 12_000
    world.now_ms += 500
    world.failed(8)
    assert world.upstream.direct_from_ms == due
    world.upstream.succeeded(8)
    assert world.upstream.direct_from_ms == NEVER_MS
    assert world.upstream.in_order() == (8, 7)


def test_the_leaders_own_answers_do_not_end_the_direct_time() -> None:
    """Goal: only a relay's answer brings an observer back."""
    world = _Relays()
    world.upstream.go_direct(world.now_ms, CONFIG)
    world.upstream.succeeded(1)
    assert world.upstream.is_direct
    assert world.upstream.retry_ms == 15_000
    world.upstream.succeeded(7)
    assert not world.upstream.is_direct


def test_what_is_known_of_an_earlier_epoch_does_not_confirm_a_newer_one() -> None:
    """Goal: the age is that of the epoch's own leader."""
    upstream = Upstream((7,))
    upstream.confirm((), 1, 900)
    upstream.confirm((), 1, 800)
    assert upstream.confirmed_ms == 900
    upstream.confirm((), 2, 850)
    assert upstream.confirmed_ms == 850


def core_with(epochs: str, *, committed: int) -> CoreState:
    """Return a log with the epochs ``epoch@start``; the last number is its end."""
    core = CoreState(
        config=CONFIG, cluster_id=CLUSTER, me=key(5), rng=random.Random(1), bootstrap=(),
        relays=RelayPlan(serves=True),
    )  # fmt: skip
    starts = tuple(EpochStart(*map(int, each.split("@"))) for each in epochs.split())
    core.log = LogView(OffsetAndEpoch(0, 0), OffsetAndEpoch(20, starts[-1].epoch), starts)
    core.high_watermark = committed
    return core


@pytest.mark.parametrize(
    ("offset", "last_epoch", "expected"),
    [
        (0, 0, SERVE),
        (5, 1, SERVE),
        (12, 2, SERVE),
        (10, 1, SERVE),
        (12, 1, Diverging(OffsetAndEpoch(10, 1))),
        # Epoch 3 begins above the high watermark: no replica in this subtree can have it.
        (12, 3, Diverging(OffsetAndEpoch(15, 2))),
    ],
)
def test_a_relay_compares_with_what_is_committed(
    offset: int, last_epoch: int, expected: object
) -> None:
    """Goal: no point of divergence above the high watermark, no epoch that may yet be cut."""
    core = core_with("1@0 2@10 3@18", committed=15)
    classification = classify_committed(core, offset, last_epoch)
    assert classification == expected
    if isinstance(classification, Diverging):
        assert classification.point.offset <= core.high_watermark


def test_a_subtree_reports_its_lowest_position_over_all_levels() -> None:
    """Goal: 630.5 through relays. Method: a relay below a relay, a new observer at 0."""
    relay = Relay(7)
    for node_id, end, below in ((11, 50, None), (12, 70, Subtree(low=30, members=9))):
        progress = ReplicaProgress(key(node_id), is_voter=False, live_since_ms=1, end_offset=end)
        progress.subtree = below
        relay.downstream[progress.key] = progress
        relay.note(progress)
    assert relay.subtree == Subtree(low=30, members=11, links=((11, 7), (12, 7)))
    late = ReplicaProgress(key(13), is_voter=False, live_since_ms=9)
    relay.downstream[late.key] = late
    relay.note(late)
    assert relay.subtree is not None
    assert (relay.subtree.low, relay.subtree.members) == (0, 12)
    relay.forget_silent(5)
    relay.refresh()
    assert relay.subtree == Subtree(low=0, members=1, links=((13, 7),))


def test_a_relay_that_has_started_again_reports_its_log_start_for_one_session() -> None:
    """Goal: 630.5 for observers that come back to it. Method: report before, in and after."""
    relay = Relay(7, silent_until_ms=1_000)
    assert relay.report(999, 3, log_start=5) == Subtree(5, 0, is_provisional=True)
    late = ReplicaProgress(key(13), is_voter=False, live_since_ms=9, end_offset=80)
    relay.downstream[late.key] = late
    relay.note(late)
    assert relay.report(999, 3, log_start=5) == Subtree(5, 1, ((13, 7),), is_provisional=True)
    assert relay.report(1_000, 3, log_start=5) == Subtree(low=80, members=1)
    relay.forget_silent(10)
    relay.refresh()
    assert relay.report(1_000, 3, log_start=5) is None


def test_a_report_is_provisional_as_long_as_one_below_it_is() -> None:
    relay = Relay(7)
    below = ReplicaProgress(key(12), is_voter=False, live_since_ms=1, end_offset=70)
    below.subtree = Subtree(low=30, members=9, is_provisional=True)
    relay.downstream[below.key] = below
    relay.refresh()
    assert relay.reported(0, log_start=5) == Subtree(30, 10, ((12, 7),), is_provisional=True)
    below.note_subtree(Subtree(low=30, members=9))
    relay.refresh()
    assert relay.reported(0, log_start=5) == Subtree(30, 10, ((12, 7),))


@pytest.mark.parametrize(
    ("log", "reported"), [("", None), ("1:a 1:b", Subtree(0, 0, is_provisional=True))]
)
def test_a_relay_with_an_empty_disk_has_served_no_observer(
    log: str, reported: Subtree | None
) -> None:
    plan = RelayPlan(serves=True)
    node = WireNode(
        config=CONFIG, cluster_id=CLUSTER, me=key(7), rng=random.Random(1), relays=plan,
        bootstrap=(1,),
    )  # fmt: skip
    disk = disk_with(log) if log else Disk()
    output = node.start(5, disk.durable_state())
    (request,) = [each.message for each in [*output.immediate, *output.after_persist]]
    assert isinstance(request, FetchRequest)
    assert request.subtree == reported
    assert node.tree().subtree_low == (reported.low if reported else -1)
    assert node.tree().is_low_provisional == (reported is not None)


def test_a_voter_that_may_relay_reports_no_subtree() -> None:
    """Goal: ``relay.enable`` on a voter does nothing. Method: restart one with a log."""
    node = WireNode(
        config=CONFIG, cluster_id=CLUSTER, me=key(1), rng=random.Random(1),
        relays=RelayPlan(serves=True),
    )  # fmt: skip
    disk = disk_with("1:a 1:b", epoch=1, leader=2)
    output = node.start(5, replace(disk, first_voters=(voter(1), voter(2))).durable_state())
    (request,) = [each.message for each in [*output.immediate, *output.after_persist]]
    assert isinstance(request, FetchRequest)
    assert request.subtree is None


def test_a_subtree_lists_the_sources_of_its_members_up_to_the_limit() -> None:
    relay = Relay(7)
    for node_id, links in ((11, ((20, 11), (21, 20))), (12, tuple((n, 12) for n in range(999)))):
        progress = ReplicaProgress(key(node_id), is_voter=False, live_since_ms=1)
        progress.subtree = Subtree(low=0, members=len(links), links=links)
        relay.downstream[progress.key] = progress
    relay.refresh()
    assert relay.subtree is not None
    assert relay.subtree.links[:5] == ((11, 7), (12, 7), (20, 11), (21, 20), (0, 12))
    assert (len(relay.subtree.links), relay.subtree.members) == (LINKS_MAX, 1003)


@pytest.mark.parametrize("auto_join", [False, True])
def test_who_wants_to_become_a_voter_asks_the_leader_only(auto_join: bool) -> None:
    """Goal: the leader sees an observer catch up that is about to join."""
    core = CoreState(
        config=QuorumConfig(auto_join=auto_join), cluster_id=CLUSTER, me=key(5),
        rng=random.Random(1), bootstrap=(), relays=RelayPlan(fetch_from=(7,)),
    )  # fmt: skip
    assert relay_to_ask(core) == (None if auto_join else 7)
    assert may_go_direct(core) is auto_join


def test_relays_are_tried_again_in_turn() -> None:
    """Goal: an observer that fetches from the leader finds the relay that is back, whichever it is.

    Method: two relays are silent; the pause after a failure is over when the next try is due.
    """
    core = CoreState(
        config=CONFIG, cluster_id=CLUSTER, me=key(5), rng=random.Random(1), bootstrap=(),
        relays=RelayPlan(fetch_from=(7, 8, 9)),
    )  # fmt: skip
    core.following.upstream.go_direct(core.now_ms, CONFIG)
    asked = []
    for _ in range(6):
        core.now_ms = core.following.upstream.retry_ms
        relay = relay_to_ask(core)
        assert relay is not None
        asked.append(relay)
        core.peer_failed(relay)
    assert asked == [7, 8, 9, 7, 8, 9]
    core.following.peers.succeeded(8)
    core.following.upstream.succeeded(8)
    assert relay_to_ask(core) == 8
