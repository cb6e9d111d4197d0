"""A peer's node id is that of its certificate, in both directions, over real TLS streams."""

from __future__ import annotations

import logging
import shutil
from dataclasses import replace
from pathlib import Path

import grpc
import pytest
from grpc import aio

from quorum.core.messages.fetch_messages import FetchResponse
from quorum.core.messages.vote_messages import VoteRequest
from quorum.errors import ConfigError
from quorum.transport.hello import Hello
from quorum.transport.node_names import NodeNames
from quorum.transport.security import TlsFiles, TlsIdentity, load_tls
from quorum.types import NO_NODE, OffsetAndEpoch, ReplicaKey
from quorum.v1 import common_pb2, raft_pb2, raft_pb2_grpc
from tests.support.certificates import NO_NAMES, authority, node
from tests.support.peer_harness import CLUSTER, fetch, key, refusal, replica, run

pytestmark = [
    pytest.mark.usefixtures("carrier"),
    pytest.mark.skipif(shutil.which("openssl") is None, reason="needs openssl"),
]

NAMES = NodeNames("node-{id}.quorum.test")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("identity")
    authority(made, "ours")
    for node_id in (1, 2, 3):
        node(made, "ours", f"n{node_id}", f"DNS:{NAMES.of(node_id)}")
    node(made, "ours", "o2", "DNS:observer-2.quorum.test")
    node(made, "ours", "both", "DNS:elsewhere.test", "DNS:NODE-2.quorum.test")
    node(made, "ours", "wildcard", "DNS:*.quorum.test")
    node(made, "ours", "nameless", NO_NAMES)
    node(made, "ours", NAMES.of(2), NO_NAMES)
    return made


def identity(folder: Path, name: str) -> TlsIdentity:
    return TlsIdentity(files(folder, name))


def files(folder: Path, name: str) -> TlsFiles:
    return TlsFiles(folder / f"{name}.pem", folder / f"{name}.key", folder / "ours.pem")


@pytest.mark.parametrize("certificate", ["n2", "both"])
def test_a_node_that_shows_its_own_certificate_is_answered(folder: Path, certificate: str) -> None:
    """Its name may be one of several, in any case of letters."""

    async def scenario() -> None:
        async with (
            replica(1, tls=identity(folder, "n1"), names=NAMES) as leader,
            replica(2, tls=identity(folder, certificate), names=NAMES) as follower,
        ):
            leader.echo()
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: bool(follower.handler.received))
            assert leader.link.counters.impostors_refused == 0

    run(scenario())


@pytest.mark.parametrize(
    ("certificate", "carries"),
    [
        ("n3", "node-3.quorum.test"),
        ("wildcard", r"\*.quorum.test"),
        ("nameless", "no alternative name"),
        # gRPC would take the common name where there is no alternative name; we do not.
        ("node-2.quorum.test", "no alternative name"),
    ],
)
def test_a_caller_with_another_certificate_is_refused(
    folder: Path, certificate: str, carries: str, caplog: pytest.LogCaptureFixture
) -> None:
    """All have certificates of our authority. No message passes; both ends log the reason."""

    async def scenario() -> None:
        async with (
            replica(1, tls=identity(folder, "n1"), names=NAMES) as leader,
            replica(2, tls=identity(folder, certificate), names=NAMES) as impostor,
        ):
            leader.echo()
            impostor.network.set_peers({1: leader.address})
            assert "claims to be node 2" in await refusal(impostor, by=1)
            assert leader.handler.received == []
            assert leader.link.counters.impostors_refused >= 1
            assert impostor.handler.refused == []
            assert "claims to be node 2" in impostor.network.statuses()[0].problem

    with caplog.at_level(logging.WARNING):
        run(scenario())
    assert "stream refused: the caller claims to be node 2" in caplog.text
    assert carries.replace("\\", "") in caplog.text


WITH_OBSERVERS = NodeNames(NAMES.template, "observer-{id}.quorum.test")


def test_a_node_with_an_observers_certificate_fetches_and_does_not_vote(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """It is node 2 all the same. Its vote ends the stream, and does not reach the quorum."""

    async def scenario() -> None:
        async with (
            replica(1, tls=identity(folder, "n1"), names=WITH_OBSERVERS) as leader,
            replica(2, tls=identity(folder, "o2"), names=WITH_OBSERVERS) as observer,
        ):
            leader.echo()
            observer.network.set_peers({1: leader.address})
            observer.network.send(1, fetch(2, 1))
            await observer.handler.until(lambda: bool(observer.handler.received))
            before = len(leader.handler.received)
            vote = VoteRequest(2, CLUSTER, key(2), key(1), 4, OffsetAndEpoch(0, 0), pre_vote=False)
            observer.network.send(1, vote)
            await observer.handler.until(lambda: (1, 2) in observer.handler.failed)
            assert len(leader.handler.received) == before
            assert leader.link.counters.impostors_refused == 1

    with caplog.at_level(logging.WARNING):
        run(scenario())
    assert "VoteRequest: the certificate of node 2 is an observer's" in caplog.text


def test_which_certificates_are_of_nodes() -> None:
    def auth(*names: str) -> dict[str, list[bytes]]:
        return {"x509_subject_alternative_name": [name.encode() for name in names]}

    for name in ("node-1.quorum.test", "NODE-20.quorum.test", "node-0.quorum.test"):
        assert WITH_OBSERVERS.names_voter(auth("x.test", name))
        assert not WITH_OBSERVERS.names_observer(auth(name))
    for name in (
        "node-01.quorum.test",
        "node-.quorum.test",
        "node-1xquorum.test",
        "node-1.quorum.test.x",
    ):
        assert not WITH_OBSERVERS.names_voter(auth(name))
    assert WITH_OBSERVERS.names_observer(auth("observer-7.quorum.test"))
    assert not NAMES.names_observer(auth("observer-7.quorum.test"))
    assert WITH_OBSERVERS.voter_problem(2, auth("observer-2.quorum.test", NAMES.of(2))) is None
    assert WITH_OBSERVERS.voter_problem(2, auth("observer-2.quorum.test")) is not None
    assert NAMES.voter_problem(2, auth("observer-2.quorum.test")) is None


@pytest.mark.parametrize("certificate", ["n3", "nameless"])
def test_an_answerer_with_another_certificate_is_not_asked(folder: Path, certificate: str) -> None:
    """It calls itself node 1 and listens at node 1's address; not even our hello gets to it."""

    async def scenario() -> None:
        async with (
            replica(1, tls=identity(folder, certificate), names=NAMES) as impostor,
            replica(2, tls=identity(folder, "n2"), names=NAMES) as follower,
        ):
            impostor.echo()
            follower.network.set_peers({1: impostor.address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: follower.handler.failed == [(1, 1)])
            assert impostor.handler.received == []
            assert impostor.network.service.stream_count == 0
            assert follower.handler.received == []
            assert follower.handler.refused == []
            assert "not that of node-1.quorum.test" in follower.network.statuses()[0].problem
            assert follower.link.counters.impostors_refused >= 1

    run(scenario())


def test_a_configured_server_is_identified_by_its_host_name(folder: Path) -> None:
    """Its number is not known before it answers; the certificate carries the address instead."""

    async def scenario() -> None:
        async with (
            replica(3, tls=identity(folder, "n3"), names=NAMES) as server,
            replica(2, tls=identity(folder, "n2"), names=NAMES) as follower,
        ):
            server.echo()
            follower.network.set_peers({-2: server.address})
            follower.network.send(-2, fetch(2, 1))
            await follower.handler.until(lambda: bool(follower.handler.received))
            assert [sender for sender, _ in follower.handler.received] == [-2]
            assert [sender for sender, _ in server.handler.received] == [2]
            assert follower.link.counters.impostors_refused == 0

    run(scenario())


def test_who_has_no_number_claims_nothing(folder: Path) -> None:
    """An observer without a node id needs only a certificate of the authority."""
    nobody = Hello(CLUSTER, ReplicaKey(NO_NODE), b"")

    async def scenario() -> None:
        async with (
            replica(1, tls=identity(folder, "n1"), names=NAMES) as leader,
            replica(2, tls=identity(folder, "both"), names=NAMES, hello=nobody) as observer,
        ):
            leader.echo()
            observer.network.set_peers({1: leader.address})
            observer.network.send(1, fetch(2, 1, replica=ReplicaKey(NO_NODE)))
            await observer.handler.until(lambda: bool(observer.handler.received))
            assert [type(each) for _, each in observer.handler.received] == [FetchResponse]
            ((sender, _),) = leader.handler.received
            assert sender < -1000  # a number of its stream, not one that it claims
            assert leader.link.counters.impostors_refused == 0

    run(scenario())


def test_a_call_votes_only_for_the_node_of_its_certificate(folder: Path) -> None:
    """An election request by a unary call needs the name of its author, as a stream does."""

    async def scenario() -> None:
        async with replica(1, tls=identity(folder, "n1"), names=NAMES) as leader:
            leader.echo()
            for certificate, candidate, is_considered in (("n2", 2, True), ("n2", 3, False)):
                tls = load_tls(files(folder, certificate))
                credentials = grpc.ssl_channel_credentials(
                    tls.authorities, tls.key, tls.certificate
                )
                name = (("grpc.ssl_target_name_override", NAMES.of(1)),)
                request = raft_pb2.VoteRequest(
                    candidate=common_pb2.ReplicaKey(id=candidate),
                    epoch=4,
                    last=common_pb2.OffsetAndEpoch(offset=7, epoch=3),
                )
                async with aio.secure_channel(leader.address, credentials, name) as channel:
                    call = raft_pb2_grpc.RaftServiceStub(channel).Vote(request, timeout=30)
                    if is_considered:
                        assert (await call).error_code == common_pb2.ERROR_CODE_NONE
                        continue
                    with pytest.raises(aio.AioRpcError) as caught:
                        await call
                    assert caught.value.code() is grpc.StatusCode.PERMISSION_DENIED
            assert [type(each) for _, each in leader.handler.received] == [VoteRequest]
            assert leader.link.counters.impostors_refused == 1

    run(scenario())


def test_without_tls_no_caller_has_a_node_identity() -> None:
    """Without credentials, although names are required, every caller is refused."""

    async def scenario() -> None:
        async with replica(1, names=NAMES) as leader, replica(2) as follower:
            leader.echo()
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: follower.handler.failed == [(1, 1)])
            assert leader.handler.received == []

    run(scenario())


def test_a_node_does_not_start_with_a_certificate_its_peers_would_refuse(
    folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """At the start it is an error; a renewal with one is reported, and the old one stays."""
    load_tls(replace(files(folder, "n1"), own_names=(NAMES.of(1),)))
    for wrong in ("n3", "nameless", NAMES.of(2)):
        with pytest.raises(ConfigError, match=r"no subject alternative name node-2"):
            load_tls(replace(files(folder, wrong), own_names=(NAMES.of(2),)))
    own = replace(
        node(folder, "ours", "renewed", "DNS:node-1.quorum.test"), own_names=(NAMES.of(1),)
    )
    alive = TlsIdentity(own)
    before = alive.current()
    for part in ("certificate", "key"):
        getattr(own, part).write_bytes(getattr(files(folder, "n3"), part).read_bytes())
    assert alive.current() == before
    assert "no subject alternative name node-1.quorum.test" in caplog.text


@pytest.mark.parametrize("good", ["node-{id}.quorum.test", "{id}", "N{id}.a-b"])
def test_templates_that_make_names(good: str) -> None:
    assert NodeNames(good).of(7) == good.lower().replace("{id}", "7")


@pytest.mark.parametrize(
    "bad", ["", "node.test", "{id}.{id}", "{id}_a", "*.{id}", "-{id}", "{id}.", "{id}" + "x" * 60]
)
def test_templates_that_do_not(bad: str) -> None:
    with pytest.raises(ConfigError, match="no DNS name"):
        NodeNames(bad)
