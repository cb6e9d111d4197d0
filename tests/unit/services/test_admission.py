"""More calls than a node takes at a time are refused at once; when one ends, the next gets in."""

from __future__ import annotations

import asyncio

import grpc
import pytest

from quorate.client.limits import SERVER_OPTIONS
from quorate.services.admission import Gate, ServiceLimits
from quorate.services.errors import RequestRefusedError
from quorate.services.registration import ClientServices
from quorum.errors import ErrorCode
from quorum.transport.served_methods import ServedMethods
from quorum.v1 import metadata_pb2 as wire
from quorum.v1 import metadata_pb2_grpc
from tests.support.served_node import cluster


def test_a_gate_lets_so_many_through_and_the_next_one_after_an_end():
    gate = Gate("things", 2)
    with gate.passing():
        with gate.passing():
            with pytest.raises(RequestRefusedError, match="2 things") as refused:
                gate.passing().__enter__()
            assert refused.value.code is ErrorCode.RESOURCE_EXHAUSTED
        assert gate.open_count == 1
        with gate.passing():
            assert gate.open_count == 2
    assert gate.open_count == 0


def test_a_call_that_fails_gives_its_place_back():
    gate = Gate("things", 1)
    with pytest.raises(KeyError), gate.passing():
        raise KeyError
    assert gate.open_count == 0


async def refusal(call) -> grpc.StatusCode:
    """The status with which a call that should be refused ends."""
    with pytest.raises(grpc.aio.AioRpcError) as failed:
        await call
    return failed.value.code()


def test_each_kind_of_call_has_its_own_maximum():
    """One call of each kind holds the only place; a second of that kind is turned away."""

    async def run():
        _, nodes = cluster(1)
        methods = ServedMethods()
        server = grpc.aio.server(options=SERVER_OPTIONS)
        server.add_generic_rpc_handlers((methods,))
        services = ClientServices(nodes[0], limits=ServiceLimits(1, 1, 1))
        services.register(methods)
        port = server.add_insecure_port("127.0.0.1:0")
        await server.start()
        try:
            async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as channel:
                stub = metadata_pb2_grpc.MetadataServiceStub(channel)
                hello = wire.WriteStreamRequest(hello=wire.WriterIdentity(client_id="a"))
                watch, stream = stub.Watch(wire.WatchRequest()), stub.WriteStream()
                await watch.read()
                await stream.write(hello)
                await stream.read()
                held = stub.FetchLog(
                    wire.FetchLogRequest(offset=nodes[0].high_watermark, max_wait_ms=20_000),
                    timeout=30,
                )
                await services_hold_a_call(services)
                exhausted = grpc.StatusCode.RESOURCE_EXHAUSTED
                query = stub.ListTopics(wire.ListTopicsRequest(), timeout=30)
                assert await refusal(query) is exhausted
                assert await refusal(stub.Watch(wire.WatchRequest()).read()) is exhausted
                second = stub.WriteStream()
                assert await refusal(second.read()) is exhausted
                nodes[0].commit()
                await held
                await stub.ListTopics(wire.ListTopicsRequest(), timeout=30)
                watch.cancel()
                stream.cancel()
        finally:
            await services.stop()
            await methods.stop(server, None)
            services.close()

    async def services_hold_a_call(services):
        while services.calls.open_count == 0:
            await asyncio.sleep(0)

    asyncio.run(asyncio.wait_for(run(), 20))
