"""Operators' requests to the quorum, through the client and a real server."""

from __future__ import annotations

import asyncio
import logging
import re
from dataclasses import replace

import pytest

from quorate.client import Client, RefusedError
from quorate.services.errors import RequestRefusedError
from quorate.services.ports import Outcome, SnapshotMade
from quorum.control_records import Origin
from quorum.core.contract.local_events import NO_TOKEN, AddVoter, RemoveVoter, UpdateVoter
from quorum.errors import ErrorCode
from quorum.types import Endpoint, ReplicaKey, Voter
from quorum.v1 import common_pb2
from tests.support.served_node import FakeNode, SharedLog, cluster, serving


def with_client(scenario, *, leader=1, ask=(1, 2, 3)):
    """Run ``scenario(log, nodes, client)`` against three nodes."""

    async def run():
        log, made = cluster(3, leader=leader)
        async with serving(*made):
            addresses = [made[number - 1].address for number in ask]
            async with Client(addresses, timeout_seconds=30) as client:
                await scenario(log, made, client)

    asyncio.run(run())


def test_a_transfer_goes_to_the_leader_and_returns_the_new_leader() -> None:
    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        answer = await client.transfer_leadership(3)
        assert (answer.leader_id, answer.leader_epoch) == (3, 2)
        assert [node.asked_to_lead for node in nodes] == [[], [3], []]

    with_client(scenario, leader=2, ask=(1, 2, 3))


def test_a_checkpoint_that_cannot_be_written_is_refused_with_the_cause() -> None:
    async def full(*, dry_run: bool) -> SnapshotMade:
        cause = "the disk has no room for a checkpoint"
        raise RequestRefusedError(ErrorCode.UNKNOWN_SERVER_ERROR, cause)

    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        for node in nodes:
            node.create_snapshot = full
        with pytest.raises(RefusedError, match="no room"):
            await client.create_snapshot()

    with_client(scenario)


def test_every_change_is_in_the_audit_log_with_who_and_why(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Also one that is refused; a transfer without a target names no node."""

    async def run() -> None:
        _, (node,) = cluster(1)
        async with serving(node):
            async with Client([node.address], timeout_seconds=30, reason="disk swap") as client:
                await client.remove_voter(2, b"d" * 16)
                asked = Origin("unauthenticated:", "disk swap")
                assert node.voter_changes[-1].origin == asked
                node.transfer_outcome = Outcome(ErrorCode.INELIGIBLE_REPLICA, "behind")
                with pytest.raises(RefusedError):
                    await client.transfer_leadership()
                assert node.transfer_origins == [asked]
            async with Client([node.address], timeout_seconds=30) as client:
                await client.add_voter(4, b"d" * 16, [])

    with caplog.at_level(logging.WARNING, "quorate.audit"):
        asyncio.run(run())
    lines = [re.sub(r"address=\S+ ", "", line) for line in caplog.messages]
    who = "event=quorum_change principal=unauthenticated:"
    assert lines == [
        f"{who} what=RemoveVoter node=2 outcome=done reason=disk swap",
        f"{who} what=TransferLeadership node=-1 outcome=INELIGIBLE_REPLICA reason=disk swap",
        f"{who} what=AddVoter node=4 outcome=done reason=-",
    ]


def test_without_a_target_the_leader_chooses() -> None:
    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        nodes[0].elected = 2
        assert (await client.transfer_leadership()).leader_id == 2
        assert nodes[0].asked_to_lead == [-1]

    with_client(scenario)


@pytest.mark.parametrize(
    "code",
    [ErrorCode.INELIGIBLE_REPLICA, ErrorCode.VOTER_NOT_FOUND, ErrorCode.REQUEST_TIMED_OUT],
)
def test_a_refusal_is_reported_and_not_retried(code: ErrorCode) -> None:
    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        nodes[0].transfer_outcome = Outcome(code, "voter 3 is 9 records behind")
        with pytest.raises(RefusedError, match="9 records behind") as refused:
            await client.transfer_leadership(3)
        assert refused.value.code == code
        assert nodes[0].asked_to_lead == [3]

    with_client(scenario)


def test_an_unexpected_winner_is_reported() -> None:
    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        nodes[0].elected = 2
        with pytest.raises(RefusedError, match="node 2 was elected") as refused:
            await client.transfer_leadership(3)
        assert refused.value.code == common_pb2.ERROR_CODE_NEW_LEADER_ELECTED

    with_client(scenario)


def test_a_request_for_an_epoch_that_is_over_changes_nothing() -> None:
    """What a repeat of a transfer that succeeded would meet."""

    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        original = client.describe_quorum

        async def outdated(**options):
            answer = await original(**options)
            return replace(answer, leader_epoch=answer.leader_epoch - 1)

        client.describe_quorum = outdated
        with pytest.raises(RefusedError) as refused:
            await client.transfer_leadership(3)
        assert refused.value.code == common_pb2.ERROR_CODE_FENCED_LEADER_EPOCH
        assert nodes[0].asked_to_lead == []

    with_client(scenario)


DISK = bytes(range(16))
PLACE = common_pb2.Endpoint(name="CONTROLLER", host="localhost", port=9093)


def test_changes_of_the_voters_go_to_the_leader() -> None:
    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        who = Origin("unauthenticated:", "")
        added = await client.add_voter(4, DISK, [PLACE], readmit=True)
        removed = await client.remove_voter(4, DISK)
        updated = await client.update_voter(4, DISK, [PLACE])
        assert (added.offset, removed.offset, updated.offset) == (77, 77, 77)
        assert added.leader_epoch == 1
        assert nodes[0].voter_changes == nodes[2].voter_changes == []
        place = Endpoint("CONTROLLER", "localhost", 9093)
        key = ReplicaKey(4, DISK)
        assert nodes[1].voter_changes == [
            AddVoter(NO_TOKEN, Voter(key, (place,)), readmit=True, origin=who),
            RemoveVoter(NO_TOKEN, key, origin=who),
            UpdateVoter(NO_TOKEN, Voter(key, (place,)), origin=who),
        ]

    with_client(scenario, leader=2)


@pytest.mark.parametrize(
    "code", [ErrorCode.DUPLICATE_VOTER, ErrorCode.VOTER_REMOVED, ErrorCode.REQUEST_TIMED_OUT]
)
def test_a_change_that_is_refused_is_not_repeated(code: ErrorCode) -> None:
    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        nodes[0].change_outcome = Outcome(code, "because")
        with pytest.raises(RefusedError, match="because") as refused:
            await client.add_voter(4, DISK, [PLACE])
        assert refused.value.code == code
        assert len(nodes[0].voter_changes) == 1

    with_client(scenario)


def test_a_directory_id_that_is_none_is_refused() -> None:
    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        with pytest.raises(RefusedError) as refused:
            await client.remove_voter(4, b"short")
        assert refused.value.code == common_pb2.ERROR_CODE_INVALID_REQUEST
        assert nodes[0].voter_changes == []

    with_client(scenario)
