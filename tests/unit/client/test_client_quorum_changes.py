"""Quorum changes across leader changes: applied once, and unknown only if no node can tell."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace

import pytest

from quorate.client import Client, OutcomeUnknownError, RefusedError, UnavailableError
from quorate.services.ports import Outcome, QuorumStatus, VoterChange
from quorum.control_records import Origin
from quorum.core.contract.local_events import RemoveVoter
from quorum.core.state.replica_progress import ReplicaView
from quorum.errors import ErrorCode
from quorum.types import Endpoint, ReplicaKey, Voter
from quorum.v1 import common_pb2
from tests.support.served_node import FakeNode, SharedLog, cluster, serving

DISK = bytes(range(16))
KEY = ReplicaKey(4, DISK)
PLACE = common_pb2.Endpoint(name="CONTROLLER", host="localhost", port=9093)
IN_VAIN_SECONDS = 1.5
DONE = Outcome(ErrorCode.NONE, "", 77)
UNKNOWN = Outcome(ErrorCode.NOT_LEADER_OR_FOLLOWER, "leads no longer; may still commit", 70)
"""An offset with an error: the record was written, and its outcome is unknown."""
Scenario = Callable[[SharedLog, list[FakeNode], Client], Awaitable[None]]


def with_client(scenario: Scenario, *, leader: int | None = 1) -> None:
    async def run() -> None:
        log, nodes = cluster(3, leader=leader)
        async with serving(*nodes):
            async with Client([node.address for node in nodes], timeout_seconds=30) as client:
                await scenario(log, nodes, client)

    asyncio.run(asyncio.wait_for(run(), 60))


class Voters:
    """Takes the changes of one node's voters: each with the outcome that is due."""

    def __init__(
        self, node: FakeNode, *outcomes: Outcome, applies: bool, of: ReplicaKey = KEY
    ) -> None:
        self.of = of
        self.outcomes = list(outcomes)
        self.applies = applies
        self.has_it = False
        self.endpoint = Endpoint("CONTROLLER", "localhost", 1)
        self.asked = 0
        self._described = node.describe_quorum
        node.change_voters = self.change  # type: ignore[method-assign]
        node.describe_quorum = self.describe  # type: ignore[method-assign]

    async def change(self, change: VoterChange) -> Outcome:
        self.asked += 1
        if self.applies:
            self.has_it = not isinstance(change, RemoveVoter)
            if not isinstance(change, RemoveVoter) and change.voter.endpoints:
                self.endpoint = change.voter.endpoints[0]
        return self.outcomes.pop(0)

    def describe(self) -> QuorumStatus:
        status = self._described()
        if not self.has_it:
            return status
        return replace(
            status,
            voters=(*status.voters, Voter(self.of, (self.endpoint,))),
            replicas=(*status.replicas, ReplicaView(self.of, True, -1, -1, -1)),
        )


def test_a_change_waits_for_a_leader() -> None:
    """Method: there is no leader at the first request; node 2 is elected after that answer."""

    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        adding = asyncio.create_task(client.add_voter(4, DISK, [PLACE]))
        refused = asyncio.Event()
        client._nodes.learn = lambda _hint: refused.set()  # type: ignore[assignment,method-assign]
        await refused.wait()
        del client._nodes.learn
        log.leader = 2
        assert (await adding).offset == 77
        assert [len(node.voter_changes) for node in nodes] == [0, 1, 0]

    with_client(scenario, leader=None)


def test_without_any_leader_the_error_says_that_nothing_was_done(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The time is over in a pause between attempts: one under way would leave it unknown."""
    for module in ("caller", "quorum_changes"):
        monkeypatch.setattr(f"quorate.client.{module}.BACKOFF_SECONDS", (60.0, 60.0))

    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        with pytest.raises(UnavailableError, match="does not lead"):
            await client.add_voter(4, DISK, [PLACE], timeout_seconds=IN_VAIN_SECONDS)
        with pytest.raises(UnavailableError, match="does not lead"):
            await client.transfer_leadership(2, timeout_seconds=IN_VAIN_SECONDS)
        assert all(not node.voter_changes for node in nodes)

    with_client(scenario, leader=None)


def test_an_answer_that_got_lost_is_found_in_the_voter_set() -> None:
    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        voters = Voters(nodes[0], UNKNOWN, UNKNOWN, UNKNOWN, applies=True)
        assert (await client.add_voter(4, DISK, [PLACE])).offset == -1
        assert (await client.update_voter(4, DISK, [PLACE])).offset == -1
        assert (await client.remove_voter(4, DISK)).offset == -1
        assert voters.asked == 3

    with_client(scenario)


def test_an_answer_about_the_leader_is_found_beside_its_address_for_clients() -> None:
    """Which is in answers about the quorum, and not in the record of the voters."""

    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        voters = Voters(nodes[0], UNKNOWN, applies=True, of=ReplicaKey(1, DISK))
        assert (await client.update_voter(1, DISK, [PLACE])).offset == -1
        assert voters.asked == 1

    with_client(scenario)


def test_a_change_that_did_not_take_place_is_asked_for_again() -> None:
    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        voters = Voters(nodes[0], UNKNOWN, DONE, applies=False)
        assert (await client.add_voter(4, DISK, [PLACE])).offset == 77
        assert voters.asked == 2

    with_client(scenario)


@pytest.mark.parametrize("has_pending", [False, True])
def test_what_is_not_settled_stays_unknown(has_pending: bool) -> None:
    """Method: the voter set shows the change, but not all of the leader's log is committed."""

    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        voters = Voters(nodes[0], UNKNOWN, applies=True)
        if has_pending:
            described = nodes[0].describe_quorum
            nodes[0].describe_quorum = lambda: replace(  # type: ignore[method-assign]
                described(), pending_change="add node 4, written at 70"
            )
        else:
            nodes[0].applied_limit = log.end - 1
        with pytest.raises(OutcomeUnknownError, match="may still commit"):
            await client.add_voter(4, DISK, [PLACE], timeout_seconds=IN_VAIN_SECONDS)
        assert voters.asked == 1

    with_client(scenario)


def test_a_repeat_that_meets_its_first_copy_is_done() -> None:
    """Method: the first copy takes effect only when the second is evaluated."""

    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        duplicate = Outcome(ErrorCode.DUPLICATE_VOTER, "is a voter already")
        voters = Voters(nodes[0], UNKNOWN, duplicate, applies=False)
        change = voters.change

        async def late(asked: VoterChange) -> Outcome:
            voters.applies = voters.asked == 1
            return await change(asked)

        nodes[0].change_voters = late  # type: ignore[method-assign]
        assert (await client.add_voter(4, DISK, [PLACE])).offset == -1
        assert voters.asked == 2

    with_client(scenario)


def test_a_repeat_that_is_refused_for_another_reason_is_refused() -> None:
    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        duplicate = Outcome(ErrorCode.DUPLICATE_VOTER, "another disk of node 4 is a voter")
        voters = Voters(nodes[0], UNKNOWN, duplicate, duplicate, applies=False)
        with pytest.raises(RefusedError, match="another disk"):
            await client.add_voter(4, DISK, [PLACE])
        assert voters.asked == 3

    with_client(scenario)


def test_a_lost_answer_that_may_not_be_looked_up_stays_unknown() -> None:
    """Method: the right to describe the quorum is gone when the answer gets lost."""

    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        Voters(nodes[0], UNKNOWN, applies=True)
        change = nodes[0].change_voters

        async def denied() -> None:
            raise RefusedError(common_pb2.ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED, "no right")

        async def lost(asked: VoterChange) -> Outcome:
            client.describe_quorum = denied  # type: ignore[method-assign,assignment]
            return await change(asked)

        nodes[0].change_voters = lost  # type: ignore[method-assign]
        with pytest.raises(OutcomeUnknownError, match=r"cannot be looked up.*no right"):
            await client.add_voter(4, DISK, [PLACE])

    with_client(scenario)


def test_a_transfer_with_a_lost_answer_is_confirmed_by_the_new_leader() -> None:
    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        for node in nodes:
            node.voters = tuple(
                Voter(
                    ReplicaKey(each.node_id),
                    (Endpoint("C", "127.0.0.1", int(each.address.split(":")[1])),),
                )
                for each in nodes
            )

        async def lost(target: int, _origin: Origin) -> Outcome:
            nodes[0].asked_to_lead.append(target)
            log.leader, log.epoch = target, log.epoch + 1
            return Outcome(ErrorCode.OUTCOME_UNKNOWN, "gone")

        nodes[0].transfer_leadership = lost  # type: ignore[method-assign]
        answer = await client.transfer_leadership(3)
        assert (answer.leader_id, answer.leader_epoch) == (3, 2)
        assert [node.asked_to_lead for node in nodes] == [[3], [], []]

    with_client(scenario)


def test_a_transfer_is_asked_for_in_the_epoch_that_there_is() -> None:
    """Method: another leader is elected between the look at the quorum and the request."""

    async def scenario(log: SharedLog, nodes: list[FakeNode], client: Client) -> None:
        described = client.describe_quorum

        async def and_then_elected(**options: object):
            answer = await described(**options)  # type: ignore[arg-type]
            if log.epoch == 1:
                log.epoch = 2
            return answer

        client.describe_quorum = and_then_elected  # type: ignore[method-assign,assignment]
        answer = await client.transfer_leadership(3)
        assert (answer.leader_id, answer.leader_epoch) == (3, 3)
        assert nodes[0].asked_to_lead == [3]

    with_client(scenario)
