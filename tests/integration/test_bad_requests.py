"""Noise, nonsense and oversize on every port and every method, while the cluster serves on.

No process may end, no traceback may reach a log, and what is written next is acknowledged, read
back and equal on all nodes.
"""

from __future__ import annotations

import random
import secrets
import socket
import threading
from collections.abc import Iterator
from typing import Any

import grpc
import pytest
from google.protobuf.descriptor import MethodDescriptor
from grpc_health.v1 import health_pb2
from grpc_reflection.v1alpha import reflection_pb2

from quorate.client.errors import DETAILS_KEY
from quorate.client.limits import COMMAND_BYTES_MAX, MESSAGE_BYTES_MAX
from quorate.demo.local_cluster import HOST
from quorum.v1 import admin_pb2, metadata_pb2, raft_pb2
from quorum.v1 import commands_pb2 as wire
from tests.integration.processes import Processes, running
from tests.integration.traffic import config_value, wait_equal_images, write_configs

pytestmark = pytest.mark.integration

SEED = secrets.randbits(32)
NOISES_PER_METHOD = 6
NOISE_BYTES_MAX = 2000
CALL_SECONDS = 2.0
CONNECT_SECONDS = 60.0
METHODS: list[MethodDescriptor] = [
    method
    for module in (raft_pb2, metadata_pb2, admin_pb2, health_pb2, reflection_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Processes]:
    with running(tmp_path_factory.mktemp("cluster")) as cluster:
        yield cluster


@pytest.fixture(autouse=True)
def undisturbed(cluster: Processes) -> Iterator[None]:
    """Whatever a test sends: the same processes serve on, with nothing unexpected in a log."""
    pids = {node.id: node.process.pid for node in cluster.voters if node.process}
    yield
    assert {node.id: node.process.pid for node in cluster.running_nodes if node.process} == pids
    value = str(secrets.randbelow(1 << 40))
    write_configs(cluster, [value])
    assert config_value(cluster) == value
    wait_equal_images(cluster, cluster.voters)
    for node in cluster.voters:
        text = node.log_path.read_text()
        assert "Traceback" not in text, node.log_tail(80)
        cluster.until(f"node {node.id} is ready", lambda node=node: cluster.is_ready(node) or None)


def path_of(method: MethodDescriptor) -> str:
    return f"/{method.containing_service.full_name}/{method.name}"


def noises(method: MethodDescriptor, rng: random.Random) -> list[bytes]:
    """Bytes that are no message, and messages in which nothing makes sense."""
    intact = _nonsense(method.input_type._concrete_class(), rng).SerializeToString()
    noises = [b"", rng.randbytes(rng.randrange(1, NOISE_BYTES_MAX)), b"\xff" * 64, intact]
    noises.append(intact[: len(intact) // 2])
    mangled = bytearray(intact or b"\x00")
    mangled[rng.randrange(len(mangled))] ^= 1 << rng.randrange(8)
    noises.append(bytes(mangled))
    return noises[:NOISES_PER_METHOD]


def _nonsense(message: Any, rng: random.Random, depth: int = 0) -> Any:
    """The message with every field set to something of its type."""
    for field in message.DESCRIPTOR.fields:
        if field.message_type is not None:
            if depth < 3:
                target = getattr(message, field.name)
                inner = target.add() if field.is_repeated else target
                inner.SetInParent()
                _nonsense(inner, rng, depth + 1)
            continue
        value: Any
        if field.cpp_type == field.CPPTYPE_STRING:
            noise = rng.randbytes(rng.randrange(40))
            value = noise if field.type == field.TYPE_BYTES else noise.decode("latin-1")
        elif field.cpp_type == field.CPPTYPE_BOOL:
            value = rng.random() < 0.5
        elif field.cpp_type == field.CPPTYPE_ENUM:
            value = rng.choice(field.enum_type.values).number
        elif field.cpp_type in (field.CPPTYPE_DOUBLE, field.CPPTYPE_FLOAT):
            value = rng.uniform(-1e9, 1e9)
        elif field.cpp_type in (field.CPPTYPE_UINT32, field.CPPTYPE_UINT64):
            value = rng.choice((0, 1, (1 << 32) - 1, rng.randrange(1 << 31)))
        else:
            value = rng.choice((-(1 << 31), -1, 0, 1, (1 << 31) - 1, rng.randrange(1 << 31)))
        if field.is_repeated:
            getattr(message, field.name).append(value)
        else:
            setattr(message, field.name, value)
    return message


def call(channel: grpc.Channel, method: MethodDescriptor, data: bytes) -> grpc.StatusCode:
    """One call with these bytes as its only request, whatever the method's shape."""
    ended = threading.Event()

    def requests() -> Iterator[bytes]:
        yield data
        # Held open for as long as the answers are read, as a client's stream is.
        ended.wait(CALL_SECONDS)

    try:
        if method.client_streaming:
            for _ in channel.stream_stream(path_of(method))(requests(), timeout=CALL_SECONDS / 4):
                pass
        elif method.server_streaming:
            for _ in channel.unary_stream(path_of(method))(data, timeout=CALL_SECONDS / 4):
                pass
        else:
            channel.unary_unary(path_of(method))(data, timeout=CALL_SECONDS / 4)
    except grpc.RpcError as error:
        code: grpc.StatusCode = error.code()
        if code is grpc.StatusCode.UNAVAILABLE and DETAILS_KEY in dict(error.trailing_metadata()):
            # Our own words: the same request may succeed later, or elsewhere.
            return grpc.StatusCode.FAILED_PRECONDITION
        return code
    finally:
        ended.set()
    return grpc.StatusCode.OK


@pytest.mark.long
@pytest.mark.parametrize("method", METHODS, ids=path_of)
def test_noise_to_a_method(cluster: Processes, method: MethodDescriptor) -> None:
    """Every answer is an evaluation of ours: nothing unexpected was raised, nothing went away."""
    rng = random.Random(f"{SEED} {method.full_name}")
    for node in cluster.voters:
        with grpc.insecure_channel(node.address) as channel:
            codes = [call(channel, method, noise) for noise in noises(method, rng)]
        assert grpc.StatusCode.UNKNOWN not in codes, f"seed {SEED}: {codes}"
        assert grpc.StatusCode.UNAVAILABLE not in codes, f"seed {SEED}: {codes}"


def raw_noises(rng: random.Random) -> list[bytes]:
    return [
        rng.randbytes(1 << 16),
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + rng.randbytes(4096),
        b"GET / HTTP/1.1\r\n" + b"X: " + b"y" * (1 << 16) + b"\r\n\r\n",
        b"POST /metrics HTTP/1.1\r\nContent-Length: 99999999999\r\n\r\n",
        b"\x16\x03\x01" + rng.randbytes(512),
        b"\n" * 5000,
        b"",
    ]


@pytest.mark.parametrize("which", ["client", "metrics"])
def test_noise_to_a_port(cluster: Processes, which: str) -> None:
    rng = random.Random(f"{SEED} {which}")
    for node in cluster.voters:
        port = node.port if which == "client" else node.metrics_port
        for noise in raw_noises(rng):
            reply = reply_to(noise, port)
            if which == "metrics":
                assert not reply or reply.startswith(b"HTTP/1."), (SEED, noise[:40], reply[:80])
                assert b" 200 " not in reply.split(b"\r\n", 1)[0], (SEED, noise[:40], reply[:80])


def reply_to(noise: bytes, port: int) -> bytes:
    """All that comes back until the other side ends the connection, which it has to."""
    reply = b""
    with socket.create_connection((HOST, port), timeout=CONNECT_SECONDS) as connection:
        try:
            connection.sendall(noise)
            connection.shutdown(socket.SHUT_WR)
            while part := connection.recv(1 << 16):
                reply += part
        except TimeoutError as error:
            raise AssertionError(f"seed {SEED}: still open after {noise[:40]!r}") from error
        except OSError:
            pass  # reset: it did not care to hear all of it
    return reply


def test_excess_idle_connections_do_not_stop_service(cluster: Processes) -> None:
    (node, *_) = cluster.voters
    taken = []
    try:
        for _ in range(300):
            taken.append(
                socket.create_connection((HOST, node.metrics_port), timeout=CONNECT_SECONDS)
            )
            taken.append(socket.create_connection((HOST, node.port), CONNECT_SECONDS))
        write_configs(cluster, ["77"])
        assert config_value(cluster) == "77", "written and read back while all of them are open"
        assert taken[-1].recv(1), "the last of them is served as the first"
    finally:
        for each in taken:
            each.close()
    cluster.until("the probe again", lambda: cluster.is_ready(node) or None)


def write_request(name: str) -> metadata_pb2.WriteRequest:
    change = wire.IncrementalAlterConfigs(resource_type=wire.CONFIG_RESOURCE_TYPE_BROKER)
    change.alterations.add(name=name, value="1")
    return metadata_pb2.WriteRequest(command=wire.Command(incremental_alter_configs=change))


@pytest.mark.parametrize("size", [COMMAND_BYTES_MAX + 1, MESSAGE_BYTES_MAX + 1, 64 << 20])
def test_an_oversized_write_is_refused_by_name(cluster: Processes, size: int) -> None:
    data = write_request("x" * size).SerializeToString()
    leader = cluster.leader()
    options = (("grpc.max_send_message_length", -1),)
    with grpc.insecure_channel(leader.address, options=options) as channel:
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary("/quorum.v1.MetadataService/Write")(data, timeout=60)
    error: Any = refused.value
    assert error.code() in (grpc.StatusCode.INVALID_ARGUMENT, grpc.StatusCode.RESOURCE_EXHAUSTED)
    assert "more than" in error.details() or "larger than max" in error.details()


def test_an_unknown_method(cluster: Processes) -> None:
    with grpc.insecure_channel(cluster.voters[0].address) as channel:
        with pytest.raises(grpc.RpcError) as refused:
            channel.unary_unary("/quorum.v1.MetadataService/Nothing")(b"", timeout=60)
    assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED  # type: ignore[attr-defined]


def test_a_node_of_another_cluster_is_kept_out(
    cluster: Processes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Both sides log the reason; the stranger is never ready and changes nothing."""
    with running(
        tmp_path_factory.mktemp("other"),
        voters=1,
        cluster_id="another",
        settings={"bootstrap.servers": cluster.addresses},
        starts=False,
    ) as other:
        lost = other.add_observer(9)
        other.format(lost)
        other.start(lost)
        words = "belongs to cluster"
        line = other.until_logged(lost, words)
        assert "'integration'" in line or "'another'" in line
        assert not other.is_ready(lost)
        report = cluster.until(
            "the other side's log",
            lambda: next(
                (node for node in cluster.voters if words in node.log_path.read_text()), None
            ),
        )
        assert "'another'" in report.log_path.read_text()
        described = cluster.ask("quorum", "describe", "replication")["rows"]
        assert {row["node_id"] for row in described} == {1, 2, 3}
        assert other.stop(lost) == 0
