"""Replicas that consist of their network and a recording handler, on real loopback sockets."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import grpc

from quorate.demo.ports import free_ports
from quorum.core.messages.fetch_messages import FetchRequest, FetchResponse
from quorum.core.messages.message_types import Message, Received, ReceivedRequest
from quorum.core.messages.snapshot_messages import FetchSnapshotRequest, FetchSnapshotResponse
from quorum.core.messages.vote_messages import VoteRequest, VoteResponse
from quorum.errors import ErrorCode
from quorum.transport.framing import encode_frame
from quorum.transport.grpc_stream import GrpcStream
from quorum.transport.hello import Hello, encode_hello
from quorum.transport.link import Link
from quorum.transport.node_names import NodeNames
from quorum.transport.peers import PeerNetwork
from quorum.transport.probe import SocketAddress
from quorum.transport.security import TlsIdentity
from quorum.transport.streams import EOF, EndStatus, OpenedStream
from quorum.transport.tcp_stream import TcpStream
from quorum.types import OffsetAndEpoch, ReplicaKey
from tests.support.peer_server import PeerServer

CLUSTER = "MkU3OEVBNTcwNTJENDM2Qg"
PATIENCE_S = 60.0
GRPC, TCP = "grpc", "tcp"
CARRIER = GRPC
"""What carries the streams of replicas made here; the fixture ``carrier`` sets it."""


def key(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, bytes([node_id % 256]) * 16)


def run(test: Coroutine[Any, Any, None]) -> None:
    """Run a test coroutine; one that hangs fails instead."""
    asyncio.run(asyncio.wait_for(test, PATIENCE_S))


def fetch(sender: int, request_id: int, **changes: Any) -> FetchRequest:
    fields: dict[str, Any] = {
        "request_id": request_id, "cluster_id": CLUSTER, "replica": key(sender), "epoch": 1,
        "fetch_offset": 0, "last_fetched_epoch": 0,
    }  # fmt: skip
    return FetchRequest(**{**fields, **changes})


def vote(sender: int, request_id: int) -> VoteRequest:
    return VoteRequest(
        request_id, CLUSTER, key(sender), ReplicaKey(-1), 2, OffsetAndEpoch(5, 1), pre_vote=True
    )


def answer_to(request: Message, **changes: Any) -> Message:
    """Return the response that leader 1 of epoch 1 would send."""
    common = {"error": ErrorCode.NONE, "leader_id": 1, "epoch": 1}
    match request:
        case FetchRequest():
            return FetchResponse(request.request_id, **{**common, **changes})
        case FetchSnapshotRequest():
            fields = {**common, "snapshot_id": request.snapshot_id, "position": request.position}
            return FetchSnapshotResponse(request.request_id, **{**fields, **changes})
        case VoteRequest():
            return VoteResponse(request.request_id, **{**common, "granted": True, **changes})
    raise AssertionError(request)


@dataclass
class RecordingHandler:
    """Records all calls; ``until`` waits for a condition without polling."""

    received: list[tuple[int, Message]] = field(default_factory=list)
    requests: list[ReceivedRequest] = field(default_factory=list)
    """The messages of ``received`` in their envelopes."""
    refused: list[int] = field(default_factory=list)
    failed: list[tuple[int, int]] = field(default_factory=list)
    refusals: list[str] = field(default_factory=list)
    refusal_codes: list[ErrorCode] = field(default_factory=list)
    """Errors of the failed requests, in their order; empty for a timeout."""
    on_request: Callable[[int, Message], None] | None = None
    _waiters: list[tuple[Callable[[], bool], asyncio.Future[None]]] = field(default_factory=list)

    def receive(self, sender: int, received: Received) -> None:
        message: Message
        if isinstance(received, ReceivedRequest):
            self.requests.append(received)
            message = received.request
        else:
            message = received
        self.received.append((sender, message))
        if self.on_request is not None:
            self.on_request(sender, message)
        self._check()

    def on_refused(self, peer: int) -> None:
        self.refused.append(peer)
        self._check()

    def on_request_failed(
        self,
        peer: int,
        request_id: int,
        refusal: str = "",
        code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        self.failed.append((peer, request_id))
        self.refusals.append(refusal)
        self.refusal_codes.append(code)
        self._check()

    async def until(self, condition: Callable[[], bool]) -> None:
        if not condition():
            future = asyncio.get_running_loop().create_future()
            self._waiters.append((condition, future))
            await future

    def _check(self) -> None:
        for waiter in list(self._waiters):
            if waiter[0]():
                self._waiters.remove(waiter)
                if not waiter[1].done():
                    waiter[1].set_result(None)


@dataclass
class Replica:
    """A network with its handler, and the server that accepts its peers."""

    handler: RecordingHandler
    link: Link
    network: PeerNetwork
    server: PeerServer
    uses_one_carrier: bool = True
    """Whether all its streams must have used the carrier under test."""

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self.server.port}"

    def expire_requests(self, peer: int) -> None:
        """Expire the deadlines of all open requests to ``peer``.

        So a test can first wait for whatever must happen before a deadline, on any machine.
        """
        requests = self.network._channels[peer]._requests
        timeout_s, requests._timeout_s = requests._timeout_s, 0.0
        requests._expire()
        requests._timeout_s = timeout_s

    def echo(self) -> None:
        """Answer every request at once."""
        self.handler.on_request = lambda sender, message: self.network.send(
            sender, answer_to(message)
        )


@asynccontextmanager
async def replica(
    node_id: int,
    *,
    cluster: str = CLUSTER,
    digest: bytes = b"",
    timeout_s: float = 5.0,
    tls: TlsIdentity | None = None,
    names: NodeNames | None = None,
    port: int = 0,
    hello: Hello | None = None,
    certificate_problem: Callable[[bytes], str] | None = None,
) -> AsyncIterator[Replica]:
    """Start a replica; it is stopped at the end of the block."""
    handler = RecordingHandler()
    (tcp_port,) = free_ports(1) if CARRIER == TCP else (0,)
    presented = hello or Hello(cluster, key(node_id), digest, process_id=b"a process")
    link = Link(
        replace(presented, tcp_port=tcp_port),
        handler,
        timeout_s,
        tls=tls,
        names=names,
        certificate_problem=certificate_problem,
    )
    network = PeerNetwork(link)
    server = PeerServer(network.service, f"127.0.0.1:{port}", tls)
    if tcp_port:
        server.add_tcp(link, f"127.0.0.1:{tcp_port}")
    await server.start()
    made = Replica(handler, link, network, server)
    try:
        yield made
    except BaseException as error:
        error.add_note(f"node {node_id}: {link.counters}, {network.statuses()}")
        raise
    finally:
        await network.stop()
        await server.stop()
    counters = link.counters
    if made.uses_one_carrier:
        assert counters.tcp_connects == (counters.connects if CARRIER == TCP else 0)


async def refusal(replica: Replica, by: int) -> str:
    """Send Fetches until one fails with the reason why the peer refuses this replica.

    The first may fail without: gRPC may report a failed write, and then not the status that ended
    the call.
    """
    sender = replica.link.hello.key.id
    while not any(replica.handler.refusals[-1:]):
        failures = len(replica.handler.failed)
        replica.network.send(by, fetch(sender, 100 + failures))
        await replica.handler.until(lambda n=failures: len(replica.handler.failed) > n)  # type: ignore[misc]
    return replica.handler.refusals[-1]


@asynccontextmanager
async def bare_stream(to: Replica) -> AsyncIterator[OpenedStream]:
    """A stream of the carrier under test, without any of our rules: no hello was sent yet."""
    tcp = to.server.tcp
    port = tcp.port if tcp is not None else to.server.port
    address = SocketAddress(socket.AF_INET, "127.0.0.1", port)
    stream: OpenedStream = (GrpcStream if tcp is None else TcpStream)(address, "", None)
    await stream.open()
    try:
        yield stream
    finally:
        await stream.close()


async def end_of(stream: OpenedStream) -> EndStatus:
    """Read until the other end ends the stream; return how."""
    try:
        while await stream.read() is not EOF:
            pass
    except Exception as error:
        status = stream.status_of(error)
        if status is None:
            raise
        return status
    return EndStatus(grpc.StatusCode.OK, "")


@asynccontextmanager
async def mute_stream(to: Replica, hello: Hello) -> AsyncIterator[OpenedStream]:
    """A stream that completes the handshake and answers no probe, as if its machine had died."""
    async with bare_stream(to) as stream:
        await stream.write(encode_hello(hello))
        await stream.read()
        # It speaks for the replica once its request has come through.
        await stream.write(encode_frame(fetch(2, 1)))
        await to.handler.until(lambda: bool(to.handler.received))
        yield stream
