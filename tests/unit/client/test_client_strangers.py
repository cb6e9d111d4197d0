"""Nodes of another cluster among a client's addresses: their answers are dropped whole."""

from __future__ import annotations

import asyncio

import pytest

from quorate.client import TOPIC, Client, UnavailableError
from quorate.client.cluster import CLUSTER_ID_KEY, cluster_named
from tests.support.served_node import cluster, serving, stop


def two_clusters():
    """Ours in epoch 1 and one called "other" that leads epoch 50."""
    _, ours = cluster(1)
    log, others = cluster(1)
    log.epoch = 50
    others[0].cluster_id = "other"
    return ours[0], others[0]


@pytest.mark.parametrize("order", [1, -1])
def test_a_foreign_leader_of_a_later_epoch_takes_no_write_and_answers_nothing(order):
    async def scenario():
        ours, other = two_clusters()
        async with serving(ours), serving(other):
            addresses = [ours.address, other.address][::order]
            async with Client(addresses, cluster_id=ours.cluster_id, timeout_seconds=30) as client:
                for value in range(5):
                    await client.set_config(TOPIC, "t", "retention.ms", str(value))
                    answer = await client.describe_cluster()
                    assert answer.cluster_id == ours.cluster_id
                state = await anext(aiter(client.watch()))
                assert state.offset == ours.image.provenance.end_offset
        assert ours.image.configs.value(2, "t", "retention.ms") == "4"
        assert other.contexts == []

    asyncio.run(scenario())


def test_the_first_answer_decides_when_no_cluster_is_given():
    async def scenario():
        ours, other = two_clusters()
        async with serving(ours) as servers, serving(other):
            async with Client([ours.address, other.address], timeout_seconds=0.5) as client:
                await client.describe_cluster()
                await stop(servers[ours.node_id])
                with pytest.raises(UnavailableError):
                    await client.describe_cluster()
                with pytest.raises(UnavailableError):
                    await client.set_config(TOPIC, "t", "retention.ms", "1")
        assert other.contexts == []

    asyncio.run(scenario())


def test_metadata_without_the_key_names_no_cluster():
    assert cluster_named(None) == ""
    assert cluster_named([("x", "y"), (CLUSTER_ID_KEY, b"bytes")]) == ""
    assert cluster_named([("x", "y"), (CLUSTER_ID_KEY, "a")]) == "a"
