"""Describe-quorum answers with the core's views, and from the leader."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from quorate.client import Client
from quorate.client.node_addresses import address_of, leader_in
from quorate.client.results.admin import DescribeQuorumResponse, QuorumNode
from quorate.client.results.common import Endpoint as ClientEndpoint
from quorate.services.leadership import with_client_listeners
from quorate.services.ports import Leadership
from quorum.core.leadership.epoch_catch_up import AheadView
from quorum.core.messages.fetch_messages import Subtree
from quorum.core.state.pending_change import PendingChangeView
from quorum.core.state.replica_progress import ReplicaView
from quorum.core.state.replica_table import TreeView
from quorum.incarnation import LogIncarnation
from quorum.types import ZERO_UUID, Endpoint, OffsetAndEpoch, ReplicaKey, Voter
from tests.support.served_node import cluster, serving


def with_client(scenario, *, nodes=1, leader=1, ask=None):
    """Run ``scenario(log, nodes, client)``; the client knows the nodes of ``ask``."""

    async def run():
        log, made = cluster(nodes, leader=leader)
        async with serving(*made):
            addresses = [made[n - 1].address for n in ask or range(1, nodes + 1)]
            async with Client(addresses, timeout_seconds=30) as client:
                await scenario(log, made, client)

    asyncio.run(run())


def test_the_incarnation_of_the_log_is_in_every_answer_about_positions():
    begun = LogIncarnation(1, b"i" * 16, ZERO_UUID, OffsetAndEpoch(3, 2), b"r" * 32)

    async def scenario(log, nodes, client):
        answers = [
            await client.describe_quorum(),
            await client.describe_cluster(),
            await client.list_offsets(-2),
            await client.offset_for_leader_epoch(1),
        ]
        assert {each.log_incarnation for each in answers} == {b""}
        assert answers[0].log_incarnation_facts is None
        nodes[0].incarnation = begun
        answers = [
            await client.describe_quorum(),
            await client.describe_cluster(),
            await client.list_offsets(-2),
            await client.offset_for_leader_epoch(1),
        ]
        assert {each.log_incarnation for each in answers} == {begun.id}
        assert {each.log_incarnation_number for each in answers[2:]} == {1}
        facts = answers[0].log_incarnation_facts
        assert (facts.number, facts.id, facts.previous_id) == (1, begun.id, b"")
        assert (facts.kept_end_offset, facts.kept_end_epoch) == (3, 2)

    with_client(scenario)


def test_the_views_of_the_core_are_what_the_answer_shows():
    """Times of the core become times since 1970; what is not known stays so."""
    relay = ReplicaView(
        ReplicaKey(9), False, 60, 100, -1, Subtree(5, 2, ((20, 9),), True), compared_end=50
    )
    pending = PendingChangeView("add", Voter(ReplicaKey(4)), 77, 0)

    async def scenario(log, nodes, client):
        described = nodes[0].describe_quorum
        nodes[0].describe_quorum = lambda: replace(
            described(),
            replicas=(ReplicaView(ReplicaKey(1), True, 70, 90, 95, is_disqualified=True), relay),
            tree=TreeView((ReplicaKey(8),), (), 3, True),
            pending_change=pending,
            replicas_ahead=(AheadView(ReplicaKey(7), 4, True),),
            wall_shift_ms=1000,
        )
        found = await client.describe_quorum()
        (voter,), (observer,) = found.voters, found.observers
        assert (voter.last_fetch_timestamp_ms, voter.last_caught_up_timestamp_ms) == (1090, 1095)
        assert (voter.is_disqualified, voter.subtree_low_offset) == (True, -1)
        assert (observer.replica_id, observer.last_caught_up_timestamp_ms) == (9, -1)
        assert (observer.subtree_members, observer.subtree_low_offset) == (2, 5)
        assert (observer.is_subtree_low_provisional, observer.compared_end_offset) == (True, 50)
        assert [(each.observer_id, each.fetches_from) for each in observer.below] == [(20, 9)]
        assert (list(found.relay_path), found.relay_low_offset) == ([8], 3)
        assert found.is_relay_low_provisional
        assert found.pending_change == "add node 4, written at 77"
        (ahead,) = found.replicas_ahead
        assert (ahead.replica_id, ahead.epoch, ahead.is_brought_back) == (7, 4, True)

    with_client(scenario)


def test_the_quorum_is_described_by_the_leader_wherever_one_asks():
    async def scenario(log, nodes, client):
        host, port = nodes[1].address.split(":")
        nodes[0].voters = (Voter(ReplicaKey(2), (Endpoint("CONTROLLER", host, int(port)),)),)
        assert (await client.describe_quorum(from_leader=False)).node_id == 1
        assert (await client.describe_quorum()).node_id == 2
        log.leader = None
        assert (await client.describe_quorum()).leader_id == -1

    with_client(scenario, nodes=2, leader=2, ask=[1])


def test_a_leader_is_found_whose_peers_have_a_listener_of_their_own():
    """The voters' record has the peers' address alone."""

    async def scenario(log, nodes, client):
        nodes[0].voters = (Voter(ReplicaKey(2), (Endpoint("CONTROLLER", "127.0.0.1", 1),)),)
        (leader,) = (await client.describe_quorum(from_leader=False)).nodes
        assert [each.name for each in leader.endpoints] == ["CONTROLLER", "CLIENT"]
        assert address_of(leader) == nodes[1].address
        assert (await client.describe_quorum()).node_id == 2

    with_client(scenario, nodes=2, leader=2, ask=[1])


PEERS = Endpoint("CONTROLLER", "n1", 9094)


@pytest.mark.parametrize(
    ("leadership", "names"),
    [
        (Leadership(1, 4), ["CONTROLLER"]),
        (Leadership(1, 4, "n1:9094"), ["CONTROLLER"]),
        (Leadership(1, 4, "n1:9093"), ["CONTROLLER", "CLIENT"]),
        (Leadership(1, 4, "n1:9093", "n1:9095"), ["CONTROLLER", "SASL", "CLIENT"]),
        (Leadership(1, 4, "n1:9094", "[::1]:9095"), ["CONTROLLER", "SASL", "CLIENT"]),
    ],
)
def test_the_listeners_for_clients_come_last(leadership, names):
    found = with_client_listeners((PEERS,), leadership)
    assert [each.name for each in found] == names
    answer = DescribeQuorumResponse(
        leader_id=1,
        leader_epoch=4,
        nodes=[QuorumNode(node_id=1, endpoints=[client_endpoint(each) for each in found])],
    )
    hint = leader_in(answer)
    assert hint.address == (leadership.address or "n1:9094")
    assert hint.sasl_address == leadership.sasl_address


def client_endpoint(found):
    return ClientEndpoint(name=found.name, host=found.host, port=found.port)


def named(*nodes):
    """Voters that clients reach where these nodes are served."""
    found = []
    for node in nodes:
        host, port = node.address.split(":")
        found.append(Voter(ReplicaKey(node.node_id), (Endpoint("CONTROLLER", host, int(port)),)))
    return tuple(found)


def test_a_leader_that_does_not_answer_is_not_named():
    async def scenario(log, nodes, client):
        nodes[0].voters = named(nodes[1])
        log.leader, nodes[0].hears_leader, nodes[1].hears_leader = 3, False, False
        assert (await client.describe_quorum(from_leader=False)).leader_id == -1
        assert (await client.describe_quorum()).leader_id == -1
        cluster_answer = await client.describe_cluster()
        assert (cluster_answer.leader_id, cluster_answer.leader_epoch) == (-1, log.epoch)

    with_client(scenario, nodes=2, leader=2, ask=[1])


def test_a_node_that_is_cut_off_leads_to_a_leader_that_others_hear():
    async def scenario(log, nodes, client):
        nodes[0].voters = named(*nodes)
        nodes[0].hears_leader = False
        assert (await client.describe_quorum(from_leader=False)).leader_id == -1
        found = await client.describe_quorum()
        assert (found.node_id, found.leader_id, found.is_leader) == (2, 2, True)

    with_client(scenario, nodes=2, leader=2, ask=[1])
