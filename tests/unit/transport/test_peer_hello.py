"""Which peers accept each other, and the reasons that refused peers get."""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import grpc
import pytest

from quorum.errors import ErrorCode
from quorum.transport.framing import encode_frame
from quorum.transport.hello import Hello, decode_hello, encode_hello, hello_problem
from quorum.transport.limits import (
    CLIENT_OPTIONS,
    HEADER_BYTES_MAX,
    MESSAGE_BYTES_MAX,
    REQUEST_BYTES_MAX,
    SERVER_OPTIONS,
)
from quorum.types import ReplicaKey, uuid_to_text
from tests.support.peer_harness import (
    CLUSTER,
    answer_to,
    bare_stream,
    end_of,
    fetch,
    key,
    replica,
    run,
    vote,
)

pytestmark = pytest.mark.usefixtures("carrier")

OURS = Hello(CLUSTER, key(1), b"digest", process_id=b"ours")
THEIRS = Hello(CLUSTER, key(2), b"digest", process_id=b"theirs")


@pytest.mark.parametrize(
    ("theirs", "words"),
    [
        (replace(THEIRS, cluster_id="other"), ["'other'", CLUSTER]),
        (replace(THEIRS, config_digest=b"else"), [b"else".hex(), b"digest".hex(), "settings"]),
        (replace(THEIRS, config_digest=b""), ["(none)"]),
        (replace(THEIRS, key=ReplicaKey(1, b"x" * 16)), ["both call themselves node 1"]),
        (replace(THEIRS, key=key(1)), ["this node's own"]),
        (
            replace(THEIRS, frame_version_min=2, frame_version_max=3),
            ["frame versions 2 to 3"],
        ),
        (
            replace(THEIRS, frame_version_min=0, frame_version_max=0),
            ["frame versions 0 to 0"],
        ),
        (
            replace(THEIRS, log_incarnation_id=b"i" * 16),
            [
                "LOG_INCARNATION_MISMATCH",
                uuid_to_text(b"i" * 16),
                "peer 2",
                "the first incarnation",
                "quorate format",
            ],
        ),
        (replace(THEIRS, process_id=b""), ["peer 2", "its process"]),
        (replace(THEIRS, key=ReplicaKey(2)), ["peer 2", "its disk"]),
    ],
)
def test_a_difference_is_reported_with_both_values(theirs: Hello, words: list[str]) -> None:
    """The sentence must let an operator find the wrong side."""
    problem = hello_problem(OURS, theirs)
    assert problem is not None
    for word in words:
        assert word in problem.text
    is_other_log = theirs.log_incarnation_id != OURS.log_incarnation_id
    expected = ErrorCode.LOG_INCARNATION_MISMATCH if is_other_log else ErrorCode.NONE
    assert problem.code is expected


def test_equal_clusters_talk() -> None:
    """Different nodes of one cluster, also with a wider range of versions."""
    assert hello_problem(OURS, THEIRS) is None
    assert hello_problem(OURS, replace(THEIRS, frame_version_min=0, frame_version_max=9)) is None
    assert hello_problem(OURS, Hello(CLUSTER, key(-1), b"digest")) is None
    recovered = [replace(each, log_incarnation_id=b"i" * 16) for each in (OURS, THEIRS)]
    assert hello_problem(*recovered) is None
    assert hello_problem(OURS, recovered[1]) is not None
    assert hello_problem(recovered[0], THEIRS) is not None
    assert decode_hello(encode_hello(recovered[0])) == recovered[0]


@pytest.mark.parametrize(
    ("settings", "dialled", "words"),
    [
        ({"cluster": "other"}, 1, "belongs to cluster"),
        ({"digest": b"changed"}, 1, "cluster configuration"),
        (
            {"hello": replace(OURS, config_digest=b"", log_incarnation_id=b"i" * 16)},
            1,
            "LOG_INCARNATION_MISMATCH",
        ),
        ({}, 5, "node 1 answers where node 5 is expected"),
    ],
    ids=["cluster", "digest", "log incarnation", "address of another node"],
)
def test_a_refused_stream_carries_no_message_and_has_a_reason(
    settings: dict[str, object], dialled: int, words: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The request fails, the status names the cause, and no request reached the other side."""

    async def scenario() -> None:
        async with replica(1, **settings) as leader, replica(2) as follower:  # type: ignore[arg-type]
            follower.network.set_peers({dialled: leader.address})
            follower.network.send(dialled, fetch(2, 1))
            await follower.handler.until(lambda: follower.handler.failed == [(dialled, 1)])
            assert leader.handler.received == []
            assert words in follower.network.statuses()[0].problem
            is_other_log = words == "LOG_INCARNATION_MISMATCH"
            code = ErrorCode.LOG_INCARNATION_MISMATCH if is_other_log else ErrorCode.NONE
            assert follower.handler.refusal_codes == [code]
            assert follower.link.counters.hellos_refused >= 1

    with caplog.at_level(logging.WARNING):
        run(scenario())
    assert words in caplog.text


def test_a_nodes_own_address_among_the_bootstrap_servers_is_no_fault(
    caplog: pytest.LogCaptureFixture,
) -> None:
    """Requests to it fail, the status has the reason, and log and counters show no problem."""

    async def scenario() -> None:
        async with replica(1) as node:
            node.network.set_peers({-2: node.address})
            node.network.send(-2, fetch(1, 1))
            await node.handler.until(lambda: node.handler.failed == [(-2, 1)])
            assert "own" in node.network.statuses()[0].problem
            assert node.link.counters.hellos_refused == 0

    with caplog.at_level(logging.INFO, logger="quorum"):
        run(scenario())
    assert [r for r in caplog.records if r.name.startswith("quorum")] == []


@pytest.mark.parametrize(
    ("frames", "code", "words"),
    [
        ([b""], "INVALID_ARGUMENT", "hello"),
        ([b"garbage"], "INVALID_ARGUMENT", "hello"),
        ([encode_frame(fetch(2, 1))], "INVALID_ARGUMENT", "hello"),
        ([encode_hello(OURS)[:12] + b"\xff\xff"], "INVALID_ARGUMENT", "hello"),
        ([encode_hello(replace(THEIRS, cluster_id="other"))], "FAILED_PRECONDITION", "other"),
        ([encode_hello(replace(THEIRS, config_digest=b"")), b"\x99"], "INVALID_ARGUMENT", "kind"),
        ([encode_hello(replace(THEIRS, config_digest=b"")), encode_frame(fetch(3, 1))],
         "INVALID_ARGUMENT", "replica 3 on the stream of 2"),
        ([encode_hello(replace(THEIRS, config_digest=b"")), encode_frame(answer_to(fetch(2, 1)))],
         "INVALID_ARGUMENT", "where requests are expected"),
    ],
)  # fmt: skip
def test_a_server_ends_a_stream_that_breaks_the_rules(
    frames: list[bytes], code: str, words: str
) -> None:
    """Each violation has its status; it does not reach the runtime, and later streams work."""

    async def scenario() -> None:
        async with replica(1) as leader:
            async with bare_stream(leader) as call:
                for frame in frames:
                    await call.write(frame)
                ended = await end_of(call)
            assert (ended.code.name, words in ended.details) == (code, True), ended
            counters = leader.link.counters
            assert counters.malformed + counters.hellos_refused == 1
            assert leader.handler.received == []
            async with replica(2) as follower:
                leader.echo()
                follower.network.set_peers({1: leader.address})
                follower.network.send(1, fetch(2, 1))
                await follower.handler.until(lambda: bool(follower.handler.received))

    run(scenario())


def test_a_refused_dialler_still_gets_our_hello() -> None:
    """Both operators can read what differs."""

    async def scenario() -> None:
        async with replica(1) as leader, bare_stream(leader) as call:
            await call.write(encode_hello(replace(THEIRS, cluster_id="other")))
            assert decode_hello(await call.read()).cluster_id == CLUSTER

    run(scenario())


def test_a_stream_without_a_hello_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    """A silent dialler does not hold a slot for ever."""
    monkeypatch.setattr("quorum.transport.inbound.HELLO_TIMEOUT_S", 0.05)

    async def scenario() -> None:
        async with replica(1) as leader, bare_stream(leader) as call:
            assert (await end_of(call)).code is grpc.StatusCode.DEADLINE_EXCEEDED

    run(scenario())


def test_a_peer_answering_with_the_wrong_type_is_cut_off() -> None:
    """A Vote answered by a Fetch response: request failed, stream ended, violation counted."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2) as follower:
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, vote(2, 1))
            await leader.handler.until(lambda: bool(leader.handler.received))
            leader.network.send(2, answer_to(fetch(2, 1)))
            await follower.handler.until(lambda: follower.handler.failed == [(1, 1)])
            leader.echo()
            follower.network.send(1, vote(2, 2))
            await follower.handler.until(
                lambda: bool(follower.handler.received) or len(follower.handler.failed) == 2
            )
            follower.network.send(1, vote(2, 3))
            await follower.handler.until(lambda: bool(follower.handler.received))
            assert follower.link.counters.malformed == 1
            assert follower.handler.refused == []

    run(scenario())


def test_too_many_open_requests_make_the_oldest_give_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Three at most: with the fourth the first is forgotten on both sides."""
    monkeypatch.setattr("quorum.transport.requests.OPEN_REQUESTS_MAX", 3)
    monkeypatch.setattr("quorum.transport.inbound.OPEN_REQUESTS_MAX", 3)

    async def scenario() -> None:
        async with replica(1) as leader, replica(2) as follower:
            follower.network.set_peers({1: leader.address})
            for request_id in range(4):
                follower.network.send(1, fetch(2, request_id))
            await follower.handler.until(lambda: follower.handler.failed == [(1, 0)])
            await leader.handler.until(lambda: bool(leader.handler.received))
            for request_id in range(4, 6):
                follower.network.send(1, fetch(2, request_id))
            await leader.handler.until(
                lambda: (
                    bool(leader.handler.received) and leader.handler.received[-1][1].request_id == 5
                )
            )
            assert leader.link.counters.routes_evicted >= 2

    run(scenario())


def test_too_many_streams_are_refused() -> None:
    """The third stream of a server that takes two."""

    async def scenario() -> None:
        async with replica(1) as leader, replica(2) as follower:
            leader.echo()
            follower.network.set_peers({1: leader.address})
            follower.network.send(1, fetch(2, 1))
            await follower.handler.until(lambda: bool(follower.handler.received))
            # A stream that moved to TCP may hold a second place until gRPC has ended its call.
            while leader.network.service.stream_count > 1:
                await asyncio.sleep(0)
            leader.network.service._places.most = 2
            async with bare_stream(leader) as second:
                await second.write(encode_hello(Hello(CLUSTER, ReplicaKey(-1), b"")))
                await second.read()
                async with bare_stream(leader) as third:
                    assert (await end_of(third)).code is grpc.StatusCode.RESOURCE_EXHAUSTED
            # More than one if the follower only now tried to move to TCP.
            assert leader.link.counters.streams_rejected >= 1

    run(scenario())


def test_limits_are_matched_pairs() -> None:
    """Answers fit on both sides, requests are small; the server tolerates the client's pings."""
    client, server = dict(CLIENT_OPTIONS), dict(SERVER_OPTIONS)
    for options in (client, server):
        assert options["grpc.max_send_message_length"] == MESSAGE_BYTES_MAX
        assert options["grpc.keepalive_permit_without_calls"] == 1
    assert client["grpc.max_receive_message_length"] == MESSAGE_BYTES_MAX
    assert server["grpc.max_receive_message_length"] == REQUEST_BYTES_MAX > HEADER_BYTES_MAX
    assert client["grpc.keepalive_time_ms"] == 30_000
    assert client["grpc.keepalive_timeout_ms"] == 10_000
    assert server["grpc.http2.min_recv_ping_interval_without_data_ms"] == 10_000
    assert server["grpc.so_reuseport"] == 0


def test_a_taken_port_is_refused() -> None:
    """Two nodes configured with one port must not share it silently."""

    async def scenario() -> None:
        async with replica(1) as leader:
            with pytest.raises(RuntimeError, match="bind"):
                async with replica(2, port=leader.server.port):
                    pass

    run(scenario())
