"""A change of the quorum is in doubt only if a node may have got it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest

from quorate.client import Client, OutcomeUnknownError, UnavailableError
from quorate.client.authenticator import Authenticator
from quorate.client.delivery import Delivery, NotSentError
from quorate.client.given_token import GivenToken
from quorate.client.results.admin import DescribeQuorumResponse
from quorate.services.ports import Outcome, VoterChange
from quorum.v1 import admin_pb2, common_pb2
from tests.support.moving_node import silent_address
from tests.support.served_node import cluster, serving

DISK = bytes(range(16))
PLACE = common_pb2.Endpoint(name="CONTROLLER", host="localhost", port=9093)
IN_VAIN_SECONDS = 1.0
CHANGES: dict[str, Callable[[Client], Any]] = {
    "add": lambda client: client.add_voter(4, DISK, [PLACE], timeout_seconds=IN_VAIN_SECONDS),
    "remove": lambda client: client.remove_voter(4, DISK, timeout_seconds=IN_VAIN_SECONDS),
    "update": lambda client: client.update_voter(4, DISK, [PLACE], timeout_seconds=IN_VAIN_SECONDS),
    "transfer": lambda client: client.transfer_leadership(2, timeout_seconds=IN_VAIN_SECONDS),
}


def led_by(client: Client, leader: str) -> None:
    """Let the quorum be described at once, and the leader be known to be at an address."""

    async def describe() -> DescribeQuorumResponse:
        client._nodes.leader = leader
        return DescribeQuorumResponse.of(admin_pb2.DescribeQuorumResponse(is_leader=True))

    client.describe_quorum = describe  # type: ignore[method-assign,assignment]


def hold_up_the_loop(seconds: float) -> None:
    """Keep the event loop from everything else for so long."""
    until = asyncio.get_running_loop().time() + seconds
    while asyncio.get_running_loop().time() < until:
        pass


@pytest.mark.parametrize("others", [0, 1])
@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_no_connection_was_made_for_was_not_sent(change: str, others: int) -> None:
    """While another node is known the connection gets a quarter of a second, else all the time."""

    async def scenario() -> None:
        _, (node,) = cluster(1, leader=None)
        with silent_address() as silent:
            async with serving(node), Client([silent, node.address][: 1 + others]) as client:
                led_by(client, silent)
                with pytest.raises(UnavailableError, match="no leader took it"):
                    await CHANGES[change](client)

    asyncio.run(scenario())


@pytest.mark.parametrize("change", CHANGES)
def test_a_change_that_a_node_took_and_did_not_answer_is_in_doubt(change: str) -> None:
    async def scenario() -> None:
        _, (node,) = cluster(1)

        async def never(*_asked: VoterChange) -> Outcome:
            return await asyncio.Future()

        node.change_voters = never  # type: ignore[method-assign]
        node.transfer_leadership = never  # type: ignore[method-assign,assignment]
        async with serving(node), Client([node.address]) as client:
            with pytest.raises(OutcomeUnknownError, match="no answer to it"):
                await CHANGES[change](client)

    asyncio.run(scenario())


def test_a_leader_that_cannot_be_connected_to_is_left_for_the_next() -> None:
    """Once: the change reaches the new leader only."""

    async def scenario() -> None:
        _, nodes = cluster(2, leader=2)
        with silent_address() as silent:
            async with serving(*nodes), Client([nodes[0].address, silent]) as client:
                led_by(client, silent)
                assert (await client.add_voter(4, DISK, [PLACE])).offset == 77
                assert [len(node.voter_changes) for node in nodes] == [0, 1]

    asyncio.run(scenario())


def test_a_refused_connection_is_no_delivery() -> None:
    async def scenario() -> None:
        _, (node,) = cluster(1)
        async with serving(node):
            gone = node.address
        async with Client([gone]) as client:
            delivery = Delivery()
            with pytest.raises(NotSentError, match="cannot connect"):
                await delivery.begin(client._nodes, gone, seconds=30)
            assert not delivery.may_be_taken

    asyncio.run(scenario())


@pytest.mark.parametrize("lack", [None, OSError("closed"), UnavailableError("closed")])
def test_a_request_waits_for_the_token_that_it_is_sent_with(lack: Exception | None) -> None:
    async def scenario() -> None:
        _, (node,) = cluster(1)
        async with serving(node), Client([node.address]) as client:
            delivery = Delivery()
            client._nodes._authenticator, exchanges = _authenticator(lack)
            begun = delivery.begin(client._nodes, node.address, seconds=30)
            if lack is None:
                await begun
            else:
                with pytest.raises(NotSentError, match="closed"):
                    await begun
            assert delivery.may_be_taken is (lack is None)
            if lack is None:
                await client._nodes.prove(node.address)
            assert exchanges == [node.address], "one; its token is good for the next call"

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("login", "says"),
    [
        (None, "the call was not sent: socket closed"),
        (LookupError("no login"), r"got no token: .* raised LookupError\('no login'\)"),
    ],
    ids=["before its token was asked for", "the function raised"],
)
def test_a_call_that_got_no_token_says_why_it_was_not_sent(
    login: Exception | None, says: str
) -> None:
    """Only a function that raised is to blame. The connection may have failed before its turn."""

    def token() -> str:
        if login is not None:
            raise login
        return "t"

    async def scenario() -> None:
        _, (node,) = cluster(1)
        async with serving(node), Client([node.address]) as client:
            client._nodes.given_token = given = GivenToken(token)
            delivery = Delivery()
            await delivery.begin(client._nodes, node.address, seconds=30)
            if login is not None:
                given(None, lambda *_: None)
            with pytest.raises(NotSentError, match=says):
                delivery.check_token(UnavailableError("socket closed"))
            assert not delivery.may_be_taken

    asyncio.run(scenario())


def test_a_node_that_gives_no_token_in_time_was_sent_nothing() -> None:
    async def scenario() -> None:
        _, (node,) = cluster(1)
        async with serving(node), Client([node.address]) as client:
            await client.describe_quorum()
            client._nodes._authenticator, _ = _authenticator(None)

            async def never(_address: str) -> Any:
                return await asyncio.Future()

            client._nodes._authenticator._token = never  # type: ignore[method-assign]
            delivery = Delivery()
            with pytest.raises(NotSentError, match="gave no token in 1 s"):
                async with asyncio.timeout(60):
                    await delivery.begin(client._nodes, node.address, seconds=1)
            assert not delivery.may_be_taken

    asyncio.run(scenario())


def test_an_attempt_has_the_time_that_its_connection_left() -> None:
    class Slow(Delivery):
        async def begin(self, *_where: object, seconds: float) -> float:
            return seconds / 4

    async def scenario() -> None:
        async with Client([""]) as client:
            given: list[float] = []

            async def ask_at(*_what: object, seconds: float) -> None:
                given.append(seconds)

            client._caller.ask_at = ask_at  # type: ignore[method-assign]
            await client._caller.call(
                "admin", "AddVoter", admin_pb2.AddVoterRequest(), timeout_seconds=1, delivery=Slow()
            )
            assert 0 < given[0] <= 0.25

    asyncio.run(scenario())


def test_the_last_moments_are_not_used_for_another_attempt(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It would only put "no connection in 1 ms" in the place of what went wrong."""
    monkeypatch.setattr("quorate.client.quorum_changes.BACKOFF_SECONDS", (0.0, 0.0))

    async def scenario() -> None:
        async with Client([""]) as client:
            led_by(client, "")
            tried = 0

            async def call(*_what: object, **_how: object) -> None:
                nonlocal tried
                tried += 1
                raise UnavailableError(f"failure {tried}")

            client._caller.call = call  # type: ignore[method-assign]
            with pytest.raises(UnavailableError, match=r"failure 1$"):
                await client.add_voter(4, DISK, [PLACE], timeout_seconds=0.09)

    asyncio.run(scenario())


def test_a_change_is_not_sent_when_its_time_is_over() -> None:
    """The quorum was described too late, by a program that held up the event loop."""

    async def scenario() -> None:
        _, (node,) = cluster(1)
        async with serving(node), Client([node.address]) as client:
            seen = await client.describe_quorum()

            async def late() -> DescribeQuorumResponse:
                hold_up_the_loop(0.3)
                return seen

            client.describe_quorum = late  # type: ignore[method-assign,assignment]
            with pytest.raises(UnavailableError, match="no leader took it"):
                await client.add_voter(4, DISK, [PLACE], timeout_seconds=0.2)
            assert node.voter_changes == []

    asyncio.run(scenario())


def test_a_connection_that_comes_too_late_is_not_used() -> None:
    async def scenario() -> None:
        _, (node,) = cluster(1)
        async with serving(node), Client([node.address]) as client:

            async def slow(_address: str) -> None:
                hold_up_the_loop(0.3)

            await client.describe_quorum()
            client._nodes.prove = slow  # type: ignore[method-assign]
            delivery = Delivery()
            assert 0 < await delivery.begin(client._nodes, node.address, seconds=30) <= 29.7
            delivery = Delivery()
            with pytest.raises(NotSentError, match="too late"):
                await delivery.begin(client._nodes, node.address, seconds=0.2)
            assert not delivery.may_be_taken

    asyncio.run(scenario())


def test_a_call_that_got_its_token_counts_as_sent() -> None:
    async def scenario() -> None:
        _, (node,) = cluster(1)
        async with serving(node), Client([node.address]) as client:
            client._nodes.given_token = given = GivenToken("t")
            delivery = Delivery()
            await delivery.begin(client._nodes, node.address, seconds=30)
            given(None, lambda *_: None)
            delivery.check_token(UnavailableError("socket closed"))
            assert delivery.may_be_taken

    asyncio.run(scenario())


def _authenticator(lack: Exception | None) -> tuple[Authenticator, list[str]]:
    """One whose exchanges are recorded, and end with a token or with ``lack``."""
    made = Authenticator(None, user="alice", password="pencil")
    exchanges: list[str] = []

    async def token(address: str) -> Any:
        exchanges.append(address)
        if lack is not None:
            raise lack
        return SimpleNamespace(text="t", renewed_at=float("inf"))

    made._token = token  # type: ignore[method-assign]
    return made, exchanges
