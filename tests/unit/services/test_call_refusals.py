"""Refusals that whole kinds of methods have in common, of every method of the kind."""

from __future__ import annotations

import asyncio
from typing import Any

import grpc
import pytest
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from quorate.services import admin, metadata
from quorate.services.admission import ServiceLimits
from quorate.services.ports import Outcome
from quorate.services.registration import HEALTH_WATCHES_MAX, ClientServices
from quorum.core.contract.local_events import OPERATOR_REQUESTS
from quorum.errors import CorruptBatchError, ErrorCode, StorageError
from quorum.transport.answers import DETAILS_KEY
from quorum.v1 import admin_pb2, metadata_pb2
from quorum.v1.metadata_pb2 import ReadLevel, ReadOptions
from tests.support.served_node import FakeNode, cluster, serving

METHODS = {
    method.name: (f"/{service.full_name}/{method.name}", method)
    for module in (metadata_pb2, admin_pb2)
    for service in module.DESCRIPTOR.services_by_name.values()
    for method in service.methods
}
UNARY = [
    name
    for name, (_, method) in METHODS.items()
    if not method.client_streaming and not method.server_streaming
]
READS = [name for name in UNARY if "read" in METHODS[name][1].input_type.fields_by_name]
CHANGES = [
    "Write",
    "CreateSnapshot",
    "TransferLeadership",
    "AddVoter",
    "RemoveVoter",
    "UpdateVoter",
]
HEALTH_CHECK = "/grpc.health.v1.Health/Check"
REFLECTION = "/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo"
WIRE = {**vars(admin_pb2), **vars(metadata_pb2)}
DISK = b"d" * 16


def request(method: str, **fields: Any) -> Any:
    """A request that is well-formed and would be answered."""
    defaults: dict[str, Any] = {}
    if method in ("AddVoter", "RemoveVoter", "UpdateVoter"):
        defaults = {"voter_id": 4, "directory_id": DISK}
    if method in ("TransferLeadership", "UpdateVoter"):
        defaults["current_leader_epoch"] = -1
    if method == "Write":
        command = {"tag": 1, "init_producer_id": {}}
        defaults = {"command": command}
    return WIRE[f"{method}Request"](**{**defaults, **fields})


async def until_it_ends(channel: Any, method: str, data: bytes) -> None:
    path, described = METHODS[method]
    if described.client_streaming:
        stream = channel.stream_stream(path)()
        # Only what is waited for: a write to a stream that ends meanwhile may hide why it ended.
        if data:
            await stream.write(data)
        while await stream.read() is not grpc.aio.EOF:
            pass
    elif described.server_streaming:
        async for _ in channel.unary_stream(path)(data, timeout=30):
            pass
    else:
        await channel.unary_unary(path)(data, timeout=30)


async def reason(channel: Any, method: str, message: Any) -> str:
    """Why the call is refused."""
    with pytest.raises(grpc.aio.AioRpcError) as caught:
        await until_it_ends(channel, method, message.SerializeToString())
    (details,) = (v for k, v in caught.value.trailing_metadata() or () if k == DETAILS_KEY)
    info = ErrorInfo()
    assert Status.FromString(details).details[0].Unpack(info)
    return info.reason


def with_node(scenario: Any, **options: Any) -> None:
    async def run() -> None:
        _, (node,) = cluster(1)
        async with serving(node, **options) as servers:
            async with grpc.aio.insecure_channel(node.address) as channel:
                await scenario(node, channel, servers[1])

    asyncio.run(run())


@pytest.mark.parametrize("method", METHODS)
def test_one_call_too_many_is_refused(method: str) -> None:
    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        assert await reason(channel, method, request(method)) == "RESOURCE_EXHAUSTED"

    with_node(scenario, limits=ServiceLimits(0, 0, 0))


def test_one_watch_of_health_too_many_is_refused() -> None:
    """Each stays open for as long as its caller likes; half of the places are one caller's."""

    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        watch = channel.unary_stream("/grpc.health.v1.Health/Watch")
        held = []
        for _ in range(HEALTH_WATCHES_MAX // 2 + 1):
            held.append(watch(b"", timeout=60))
            assert await held[-1].read()
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await watch(b"", timeout=60).read()
        assert refused.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        for each in held:
            each.cancel()

    with_node(scenario)


@pytest.mark.parametrize("method", METHODS)
def test_a_message_too_large_is_refused(method: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("quorate.services.calls.MESSAGE_BYTES_MAX", -1)
    firsts = {"WriteStream": {"hello": {"client_id": "c"}}, "ReadStream": {"queries": [{"tag": 1}]}}
    first: dict[str, Any] = firsts.get(method, {})

    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        assert await reason(channel, method, request(method, **first)) == "MESSAGE_TOO_LARGE"

    with_node(scenario)


@pytest.mark.parametrize("method", METHODS)
def test_a_stopping_node_begins_nothing(method: str) -> None:
    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        server.services.closing.begin()
        assert await reason(channel, method, request(method)) == "BROKER_NOT_AVAILABLE"

    with_node(scenario)


@pytest.mark.parametrize("method", CHANGES)
def test_a_change_that_is_cut_short_is_unknown(method: str) -> None:
    """Goal: no client retries a call that may have run. Method: a stop while the node works."""

    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        begun = asyncio.Event()

        async def never(*_asked: object, **_options: object) -> Any:
            begun.set()
            await asyncio.get_running_loop().create_future()

        node.held = []
        node.change_voters = never  # type: ignore[method-assign]
        node.create_snapshot = never  # type: ignore[method-assign]
        node.transfer_leadership = never  # type: ignore[method-assign]
        call = asyncio.ensure_future(reason(channel, method, request(method)))
        await (node.holds(1) if method == "Write" else begun.wait())
        server.services.closing.begin()
        assert await call == "OUTCOME_UNKNOWN"

    with_node(scenario)


class PastContext:
    """A call whose deadline passed in flight."""

    ended: grpc.StatusCode | None = None

    def time_remaining(self) -> float:
        return 0.0

    def set_trailing_metadata(self, _metadata: object) -> None:
        pass

    async def abort(self, code: grpc.StatusCode, _text: str, trailing_metadata: object) -> None:
        self.ended = code


@pytest.mark.parametrize("method", UNARY)
def test_a_call_that_comes_too_late_is_refused(method: str) -> None:
    """Method: the handler itself; over a wire the moment cannot be hit."""

    async def run() -> None:
        _, (node,) = cluster(1)
        services = ClientServices(node)
        path, _ = METHODS[method]

        class Details:
            method = path

        context = PastContext()
        is_admin = path.startswith(f"/{admin.SERVICE_NAME}/")
        assert is_admin or path.startswith(f"/{metadata.SERVICE_NAME}/")
        service = services.admin if is_admin else services.metadata
        handler = service.handlers(services._policy).service(Details())
        await handler.stream_unary(None, context)
        assert context.ended is grpc.StatusCode.DEADLINE_EXCEEDED
        services.close()

    asyncio.run(run())


@pytest.mark.parametrize("method", READS)
def test_an_unconfirmed_read_and_a_read_ahead_of_the_image_are_refused(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        linearizable = ReadOptions(level=ReadLevel.READ_LEVEL_LINEARIZABLE)
        node.confirm_read = lambda on_outcome, _reads=1: on_outcome(None)  # type: ignore[method-assign]
        refused = await reason(channel, method, request(method, read=linearizable))
        assert refused == "NOT_LEADER_OR_FOLLOWER"
        monkeypatch.setattr("quorate.services.reads.WAIT_SECONDS_MAX", 0.01)
        node.confirm_read = lambda on_outcome, _reads=1: None  # type: ignore[method-assign]
        refused = await reason(channel, method, request(method, read=linearizable))
        assert refused == "REQUEST_TIMED_OUT"
        ahead = ReadOptions(level=ReadLevel.READ_LEVEL_AT_LEAST, at_least_offset=10**6)
        refused = await reason(channel, method, request(method, read=ahead))
        assert refused == "OFFSET_NOT_AVAILABLE"

    with_node(scenario)


@pytest.mark.parametrize(
    ("method", "code"),
    [
        (method, code)
        for asked in OPERATOR_REQUESTS
        for method in [asked.__name__]
        for code in sorted(asked.refusals)
    ],
)
def test_the_cores_message_to_an_operator_is_forwarded(method: str, code: ErrorCode) -> None:
    """The scenarios show that the core answers so."""

    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        node.transfer_outcome = node.change_outcome = Outcome(code, "because")
        assert await reason(channel, method, request(method)) == code.name

    with_node(scenario)


@pytest.mark.parametrize("method", ["TransferLeadership", "UpdateVoter"])
@pytest.mark.parametrize(("epoch", "code"), [(0, "FENCED"), (99, "UNKNOWN")])
def test_a_request_of_another_epoch_is_refused(method: str, epoch: int, code: str) -> None:
    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        refused = await reason(channel, method, request(method, current_leader_epoch=epoch))
        assert refused == f"{code}_LEADER_EPOCH"

    with_node(scenario)


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (StorageError("cannot be read"), "UNKNOWN_SERVER_ERROR"),
        (CorruptBatchError("bad CRC"), "CORRUPT_MESSAGE"),
    ],
)
@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("FetchLog", {"offset": 0}),
        ("ListOffsets", {"timestamp": -1}),
        ("Watch", {"from_offset": 0, "from_epoch": -1}),
    ],
)
def test_a_log_that_cannot_be_read_ends_the_call(
    method: str, fields: dict[str, int], error: StorageError, code: str
) -> None:
    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        async def fails(*_asked: object) -> bytes:
            raise error

        node.read_log = fails  # type: ignore[method-assign]
        assert await reason(channel, method, request(method, **fields)) == code

    with_node(scenario)


@pytest.mark.parametrize("method", ["FetchLog", "Watch"])
def test_a_consumer_that_is_ahead_of_its_node_comes_again(method: str) -> None:
    """Goal: no consumer is called diverged by a node that has no high watermark yet."""

    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        node.knows_high_watermark = False
        fields = {"offset": 1} if method == "FetchLog" else {"from_offset": 1}
        assert await reason(channel, method, request(method, **fields)) == "OFFSET_NOT_AVAILABLE"

    with_node(scenario)


@pytest.mark.parametrize(
    ("method", "fields"),
    [
        ("DescribeTopics", {"names": ["t"] * 10_001}),
        ("DescribeConfigs", {"resources": [metadata_pb2.ConfigResource()] * 10_001}),
        ("FetchPositions", {"groups": ["g"] * 1_001}),
    ],
)
def test_too_much_asked_at_once_is_refused(method: str, fields: dict[str, Any]) -> None:
    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        assert await reason(channel, method, request(method, **fields)) == "MESSAGE_TOO_LARGE"

    with_node(scenario)


def test_an_unreadable_request_to_a_service_that_is_not_ours_is_refused(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary("/grpc.health.v1.Health/Check")(b"\xff", timeout=30)
        assert caught.value.code() is grpc.StatusCode.INVALID_ARGUMENT
        monkeypatch.setattr("quorate.services.calls.MESSAGE_BYTES_MAX", -1)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await channel.unary_unary("/grpc.health.v1.Health/Check")(b"", timeout=30)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED

    with_node(scenario)


@pytest.mark.parametrize(
    "path", [*(path for path, _ in METHODS.values()), HEALTH_CHECK, REFLECTION]
)
def test_a_request_that_does_not_arrive_ends_its_call(
    path: str,
) -> None:
    """Goal: a silent caller does not keep its slot. Method: calls that send only headers."""

    async def scenario(node: FakeNode, channel: Any, server: Any) -> None:
        call = channel.stream_stream(path)(timeout=30)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await call.read()
        assert caught.value.code() is grpc.StatusCode.DEADLINE_EXCEEDED
        assert "did not arrive" in caught.value.details()
        assert all(places.open_count == 0 for places in server.services.quotas())

    with_node(scenario, limits=ServiceLimits(message_seconds_max=0.05))
