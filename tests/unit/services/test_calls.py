"""What clients get wrong: garbage, missing deadlines, oversized messages, every RPC."""

from __future__ import annotations

import asyncio
import random
from contextlib import suppress

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from quorate.client.limits import (
    CLIENT_OPTIONS,
    COMMAND_BYTES_MAX,
    KEEPALIVE_TIME_MS,
    MESSAGE_BYTES_MAX,
    REQUEST_BYTES_MAX,
    SERVER_OPTIONS,
    SERVER_PING_INTERVAL_MIN_MS,
)
from quorate.services.identity import principal_of
from quorum.transport.answers import DETAILS_KEY
from quorum.v1 import admin_pb2, metadata_pb2
from tests.support.served_node import cluster, serving

METHODS = [
    (f"/{service.full_name}/{method.name}", method)
    for module in (metadata_pb2, admin_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
]
NAMES = [path.rsplit("/", 1)[1] for path, _ in METHODS]
GARBAGE = b"\x0a\xff\xff\xff\xff\x0f"


async def call(channel, path, method, data: bytes, timeout: float | None = 30.0):
    """Send raw bytes and return the status code and the reason of our ErrorInfo.

    Of a server's stream the first message counts; nothing is left open.
    """
    if method.client_streaming:
        running = channel.stream_stream(path)(timeout=timeout)
    elif method.server_streaming:
        running = channel.unary_stream(path)(data, timeout=timeout)
    else:
        running = channel.unary_unary(path)(data, timeout=timeout)
    try:
        if method.client_streaming:
            await running.write(data)
            with suppress(grpc.aio.BaseError):  # the call has ended; `read` raises its status
                await running.done_writing()
            while await running.read() is not grpc.aio.EOF:
                pass
        elif method.server_streaming:
            await running.read()
        else:
            await running
    except grpc.aio.AioRpcError as error:
        for key, value in error.trailing_metadata() or ():
            if key == DETAILS_KEY:
                info = ErrorInfo()
                assert Status.FromString(value).details[0].Unpack(info)
                return error.code(), info.reason
        return error.code(), None
    finally:
        running.cancel()
    return grpc.StatusCode.OK, None


def against_a_server(scenario):
    async def run():
        _, nodes = cluster(1)
        failures = []
        async with serving(*nodes, on_failure=lambda name, code: failures.append((name, code))):
            options = [("grpc.max_send_message_length", -1)]
            async with grpc.aio.insecure_channel(nodes[0].address, options=options) as channel:
                return await scenario(channel, failures)

    return asyncio.run(run())


@pytest.mark.parametrize(("path", "method"), METHODS, ids=NAMES)
def test_garbage_is_an_invalid_request_and_is_counted(path, method):
    async def scenario(channel, failures):
        code, reason = await call(channel, path, method, GARBAGE)
        assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")
        assert failures == [(method.name, 42)]

    against_a_server(scenario)


@pytest.mark.parametrize(("path", "method"), METHODS, ids=NAMES)
def test_random_bytes_never_reach_a_traceback(path, method, caplog):
    rng = random.Random(path)

    async def scenario(channel, _failures):
        for _ in range(30):
            data = rng.randbytes(rng.randrange(1, 60))
            code, _ = await call(channel, path, method, data, timeout=0.5)
            assert code not in (grpc.StatusCode.UNKNOWN, grpc.StatusCode.INTERNAL), data

    if method.name != "Watch":  # a well-formed request may be watched for ever
        against_a_server(scenario)
    assert "Traceback" not in caplog.text


@pytest.mark.parametrize(("path", "method"), METHODS, ids=NAMES)
def test_an_oversized_request_is_refused(path, method):
    async def scenario(channel, _failures):
        code, _ = await call(channel, path, method, bytes(MESSAGE_BYTES_MAX + 1))
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED

    against_a_server(scenario)


@pytest.mark.parametrize(
    ("path", "method"),
    [each for each in METHODS if not each[1].client_streaming and not each[1].server_streaming],
)
def test_unary_calls_need_a_deadline(path, method):
    async def scenario(channel, _failures):
        code, reason = await call(channel, path, method, b"", timeout=None)
        assert (code, reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_REQUEST")

    against_a_server(scenario)


def test_keep_alive_and_message_limits_are_matched_pairs():
    client, server = dict(CLIENT_OPTIONS), dict(SERVER_OPTIONS)
    sent, received = "grpc.max_send_message_length", "grpc.max_receive_message_length"
    assert client[sent] == client[received] == server[sent] == MESSAGE_BYTES_MAX
    assert COMMAND_BYTES_MAX < server[received] == REQUEST_BYTES_MAX < MESSAGE_BYTES_MAX
    assert SERVER_PING_INTERVAL_MIN_MS <= KEEPALIVE_TIME_MS
    assert (
        client["grpc.keepalive_time_ms"]
        >= (server["grpc.http2.min_recv_ping_interval_without_data_ms"])
    )


@pytest.mark.parametrize(
    ("auth", "principal"),
    [
        ({}, "unauthenticated:me"),
        (
            {"transport_security_type": [b"insecure"], "x509_common_name": [b"x"]},
            "unauthenticated:me",
        ),
        ({"transport_security_type": [b"ssl"]}, "unauthenticated:me"),
        ({"transport_security_type": [b"ssl"], "x509_common_name": [b"cn"]}, "tls:cn"),
        (
            {
                "transport_security_type": [b"ssl"],
                "x509_common_name": [b"cn"],
                "x509_subject_alternative_name": [b"san", b"other"],
            },
            "tls:san",
        ),
    ],
)
def test_a_name_is_believed_only_from_a_certificate(auth, principal):
    assert principal_of(auth, "me") == principal
