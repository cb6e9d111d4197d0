"""Who asked and why gets into the records that carry it out, and into no others (ADR 76)."""

from __future__ import annotations

import pytest

from quorum.control_records import LeaderChange, Origin, Voters
from quorum.core.contract.local_events import (
    AddVoter,
    LocalEvent,
    RemoveVoter,
    ShutDown,
    TransferLeadership,
    UpdateVoter,
)
from quorum.core.contract.output import Append
from quorum.core.messages.epoch_messages import EndQuorumEpochRequest
from quorum.core.messages.voter_messages import AddVoterRequest
from quorum.types import Endpoint, Voter
from tests.support.core_cluster import CLUSTER, CoreCluster
from tests.support.core_disk import key, voter
from tests.unit.core.membership.test_core_membership import ask, led

ANN = Origin("User:ann", "a new disk")
MOVED = Voter(key(2), (Endpoint("CONTROLLER", "elsewhere", 9000),))


def written(cluster: CoreCluster, kind: type) -> list[object]:
    """The control records of a type that leaders appended, oldest first."""
    return [
        record
        for member in cluster.members.values()
        for effect in member.effects
        if isinstance(effect, Append)
        for record in effect.controls
        if isinstance(record, kind)
    ]


@pytest.mark.parametrize(
    "change",
    [
        AddVoter(7, voter(4), origin=ANN),
        RemoveVoter(7, key(3), origin=ANN),
        UpdateVoter(7, MOVED, origin=ANN),
    ],
)
def test_a_voters_record_says_who_asked_for_it(change: LocalEvent) -> None:
    cluster = led(4)
    ask(cluster, 1, change)
    cluster.settle()
    assert [each.origin for each in written(cluster, Voters)][-1:] == [ANN]  # type: ignore[attr-defined]


def test_a_node_that_asks_for_itself_is_no_person() -> None:
    cluster = led(4)
    request = AddVoterRequest(70, CLUSTER, voter(4), cluster[1].epoch)
    cluster.post(4, 1, request)
    cluster.settle()
    (record,) = written(cluster, Voters)[-1:]
    assert record.origin == Origin("", "self registration of node 4")  # type: ignore[attr-defined]


def test_the_leader_that_a_transfer_made_says_who_asked() -> None:
    cluster = led()
    ask(cluster, 1, TransferLeadership(7, 3, ANN))
    cluster.settle()
    assert cluster.leaders() == [3]
    first, second = written(cluster, LeaderChange)
    assert (first.origin, second.origin) == (None, ANN)  # type: ignore[attr-defined]


def test_a_leader_that_shuts_down_gives_the_reason_and_no_person() -> None:
    cluster = led()
    ask(cluster, 1, ShutDown())
    cluster.settle()
    (record,) = written(cluster, LeaderChange)[1:]
    assert record.origin == Origin("", "node 1 shuts down")  # type: ignore[attr-defined]


def test_an_election_after_a_transfer_that_failed_names_nobody() -> None:
    """The target is asked but not elected in that epoch; whoever is elected later is nobody's."""
    cluster = led()
    cluster.cut |= {(3, 1), (3, 2)}
    ask(cluster, 1, TransferLeadership(7, 3, ANN))
    cluster.deliver(3, EndQuorumEpochRequest)
    cluster.isolate(1)
    cluster.cut -= {(3, 2)}
    cluster.advance(20_000)
    assert cluster.leaders()[-1:] != [1]
    assert [each.origin for each in written(cluster, LeaderChange)][1:] == [None]  # type: ignore[attr-defined]
