"""Whether a caller is certainly the replica that it names: met at its address, or not (ADR 52)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest

from quorum.core.messages.epoch_messages import BeginQuorumEpochRequest, EndQuorumEpochRequest
from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.messages.voter_messages import (
    AddVoterRequest,
    RemoveVoterRequest,
    UpdateVoterRequest,
)
from quorum.transport.framing import encode_frame
from quorum.transport.hello import (
    Hello,
    decode_hello,
    encode_hello,
    hinted_hello,
    is_same_process,
    process_proof,
    served_hello,
)
from quorum.transport.link import EXCHANGE_METHOD, SERVICE_NAME
from quorum.transport.peer_sessions import PeerSession, PeerSessions
from quorum.transport.streams import OpenedStream
from quorum.types import ReplicaKey, Voter
from tests.support.peer_harness import CLUSTER, Replica, bare_stream, fetch, key, replica, run

pytestmark = pytest.mark.usefixtures("carrier")

VOTER = Hello(CLUSTER, key(2), b"", process_id=b"the process of voter 2")
ANYBODY = ReplicaKey(-1)


@asynccontextmanager
async def stream(to: Replica, hello: Hello) -> AsyncIterator[tuple[OpenedStream, Hello]]:
    """A bare stream, and the hello of its other end."""
    async with bare_stream(to) as call:
        await call.write(encode_hello(hello))
        yield call, decode_hello(await call.read())


def marks(to: Replica) -> list[bool]:
    kinds = FetchRequest | BeginQuorumEpochRequest | EndQuorumEpochRequest
    return [not each.is_proven for each in to.handler.requests if isinstance(each.request, kinds)]


def test_a_process_met_at_the_voters_address_is_proven() -> None:
    """Also in the middle of its stream: as soon as this node has reached it."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2, hello=VOTER) as voter:
            leader.echo()
            leader.network.set_peers({2: "127.0.0.1:1"})
            voter.network.set_peers({1: leader.address})
            voter.network.send(1, fetch(2, 1))
            await leader.handler.until(lambda: len(leader.handler.received) == 1)
            leader.network.set_peers({2: voter.address})
            leader.network.send(2, fetch(1, 9))
            await voter.handler.until(lambda: bool(marks(voter)))
            voter.network.send(1, fetch(2, 2))
            await leader.handler.until(lambda: len(leader.handler.received) >= 2)
            assert marks(leader) == [True, False]

    run(scenario())


def test_a_voters_public_data_does_not_prove_another_caller() -> None:
    """A stranger gets the voter's hello, and claims to be the voter with its content."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2, hello=VOTER) as voter:
            leader.network.set_peers({2: voter.address})
            leader.network.send(2, fetch(1, 9))
            await voter.handler.until(lambda: bool(marks(voter)))
            async with stream(voter, Hello(CLUSTER, key(77), b"", process_id=b"a")) as (_, shown):
                assert shown.process_id == process_proof(VOTER.process_id) != VOTER.process_id
            for number, process_id in enumerate((shown.process_id, b"made up")):
                claimed = Hello(CLUSTER, key(2), b"", process_id=process_id)
                async with stream(leader, claimed) as (call, _):
                    before = len(marks(leader))
                    await call.write(encode_frame(fetch(2, 10 + number)))
                    begin = BeginQuorumEpochRequest(20 + number, CLUSTER, ANYBODY, key(2), 3)
                    await call.write(encode_frame(begin))
                    await leader.handler.until(lambda n=before: len(marks(leader)) == n + 2)
                    assert marks(leader)[before:] == [True, True]

    run(scenario())


def test_an_empty_process_id_proves_nothing() -> None:
    """Not even to a replica that was met without one: whoever leaves it out would be that replica.

    A stream in a voter's name with an empty process id once kept that voter's own streams out.
    """
    assert is_same_process(VOTER, served_hello(VOTER))
    unnamed = replace(VOTER, process_id=b"")
    assert not is_same_process(unnamed, served_hello(unnamed))
    assert not is_same_process(unnamed, served_hello(VOTER))


def test_an_observer_is_not_marked_and_an_unknown_leader_is() -> None:
    """An observer's position binds no node; ending a campaign needs a proven caller."""

    async def scenario() -> None:
        async with replica(1) as leader:
            observer = Hello(CLUSTER, key(30), b"", process_id=b"an observer")
            async with stream(leader, observer) as (call, _):
                await call.write(encode_frame(fetch(30, 1)))
                end = EndQuorumEpochRequest(2, CLUSTER, key(30), 3)
                await call.write(encode_frame(end))
                await leader.handler.until(lambda: len(marks(leader)) == 2)
                assert marks(leader) == [False, True]

    run(scenario())


def test_a_node_named_only_in_a_message_gets_no_proof() -> None:
    """AddVoter or a vote names an address of the caller's own: the leader connects to it."""

    async def scenario() -> None:
        shown: list[bytes] = []
        met = asyncio.Event()

        async def serve(call: Any, context: Any) -> None:
            shown.append(decode_hello(await context.read()).process_id)
            met.set()
            hello = Hello(CLUSTER, key(77), b"", process_id=b"a")
            await context.write(encode_hello(hello))
            await context.read()

        handler = grpc.stream_stream_rpc_method_handler(serve)
        stranger = grpc.aio.server()
        stranger.add_generic_rpc_handlers(
            (grpc.method_handlers_generic_handler(SERVICE_NAME, {EXCHANGE_METHOD: handler}),)
        )
        port = stranger.add_insecure_port("127.0.0.1:0")
        await stranger.start()
        try:
            async with replica(1) as leader, replica(2, hello=VOTER) as voter:
                leader.network.set_peers({2: voter.address})
                leader.network.send(2, fetch(1, 9))
                await voter.handler.until(lambda: bool(voter.handler.received))
                voter.uses_one_carrier = False  # The stranger has gRPC only.
                voter.network.set_peers({77: f"127.0.0.1:{port}"}, is_hint=True)
                voter.network.send(77, fetch(2, 1))
                await met.wait()
                assert shown[0] != VOTER.process_id
                claimed = Hello(CLUSTER, key(2), b"", process_id=shown[0])
                async with stream(leader, claimed) as (call, _):
                    await call.write(encode_frame(EndQuorumEpochRequest(20, CLUSTER, key(2), 3)))
                    await leader.handler.until(lambda: bool(marks(leader)))
                    assert marks(leader) == [True]
        finally:
            await stranger.stop(None)

    run(scenario())


def test_an_address_that_only_a_message_named_proves_nothing() -> None:
    """An UpdateVoter names another address of voter 2; a process there claims to be voter 2."""

    async def scenario() -> None:
        stranger = Hello(CLUSTER, key(2), b"", process_id=b"a stranger")
        async with replica(1) as leader, replica(2, hello=stranger) as claimant:
            leader.network.set_peers({2: "127.0.0.1:1"})
            leader.network.set_peers({2: claimant.address}, is_hint=True)
            leader.network.send(2, fetch(1, 9))
            await claimant.handler.until(lambda: bool(claimant.handler.received))
            claimant.network.set_peers({1: leader.address})
            claimant.network.send(1, fetch(2, 1))
            await leader.handler.until(lambda: bool(marks(leader)))
            assert marks(leader) == [True]

    run(scenario())


def test_a_record_that_confirms_a_hint_shows_this_process_to_the_peer() -> None:
    """A voter that was reached by a hint takes the leader's word once its record names it."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2, hello=VOTER) as voter:
            leader.echo()
            leader.network.set_peers({2: voter.address})
            leader.network.send(2, fetch(1, 8))
            await voter.handler.until(lambda: len(voter.handler.received) == 1)
            voter.network.set_peers({1: leader.address}, is_hint=True)
            voter.network.send(1, fetch(2, 1))
            await voter.handler.until(lambda: len(voter.handler.received) == 2)
            voter.network.set_peers({1: leader.address})
            voter.network.send(1, fetch(2, 2))
            await voter.handler.until(lambda: len(voter.handler.received) == 3)
            assert marks(leader) == [True, False]
            assert leader.link.counters.clones_refused == 0

    run(scenario())


OTHER = ReplicaKey(2, b"another disk of2")
CHANGES = (
    (OTHER, RemoveVoterRequest(5, CLUSTER, OTHER, key(2), 1)),
    (key(2), UpdateVoterRequest(5, CLUSTER, Voter(key(2)), 1)),
    (key(30), AddVoterRequest(5, CLUSTER, Voter(key(30)), 1)),
)


@pytest.mark.parametrize(("author", "change"), CHANGES, ids=lambda each: type(each).__name__)
def test_a_change_of_the_voters_is_marked(author: ReplicaKey, change: Any) -> None:
    """Any caller can send a voter's id with a directory id or an address of its own."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2, hello=VOTER) as voter:
            leader.network.set_peers({2: voter.address})
            async with stream(leader, Hello(CLUSTER, author, b"", process_id=b"a")) as (call, _):
                await call.write(encode_frame(change))
                await leader.handler.until(lambda: bool(leader.handler.received))
                (received,) = leader.handler.requests
                assert isinstance(received.request, type(change))
                assert not received.is_proven

    run(scenario())


@pytest.mark.parametrize("is_hint", [False, True])
def test_who_is_met_at_a_server_of_the_configuration_is_proven(is_hint: bool) -> None:
    """A voter that moved there, or a replica that wants to vote; not where a message named it."""

    async def scenario() -> None:
        change = UpdateVoterRequest(5, CLUSTER, Voter(key(2)), 1)
        async with replica(1) as leader, replica(2, hello=VOTER) as voter:
            leader.network.set_peers({2: "127.0.0.1:1"})
            leader.network.set_peers({-2: voter.address}, is_hint=is_hint)
            leader.network.send(-2, fetch(1, 9))
            await voter.handler.until(lambda: bool(voter.handler.received))
            async with stream(leader, VOTER) as (call, _):
                await call.write(encode_frame(change))
                await leader.handler.until(lambda: bool(leader.handler.received))
                assert leader.handler.requests[-1].is_proven is not is_hint

    run(scenario())


def test_both_forms_of_a_process_id_are_of_one_process() -> None:
    """A replica reached by a hint and by its record at once is no second copy of its disk."""
    peer_sessions = PeerSessions()
    peer_sessions.take(PeerSession(VOTER.key, hinted_hello(VOTER).process_id, lambda: None))
    assert peer_sessions.conflict_of(PeerSession(VOTER.key, VOTER.process_id, lambda: None)) is None
    assert peer_sessions.conflict_of(
        PeerSession(VOTER.key, process_proof(VOTER.process_id), lambda: None)
    )
