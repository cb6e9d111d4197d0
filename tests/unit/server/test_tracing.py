"""A write is one trace: the client's span, the leader's commit, and the apply of each replica.

The node sends its spans to a collector of this test, by OTLP over HTTP.
"""

from __future__ import annotations

import asyncio
import gc
import random
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON, ParentBased

from quorate.client import BROKER, TOPIC, Client, RefusedError
from quorate.client.tracing import write_span
from quorate.config.tracing import TracingConfig
from quorate.controller.answer_delivery import AnswerDelivery
from quorate.controller.requests import Answer, PendingCommand, RequestContext, each_answer
from quorate.server.node import ServerNode
from quorate.server.tracing import STOP_S, CommandTracing, command_tracing
from quorum.batch_decode import first_headers
from quorum.batch_encode import encode_batch
from quorum.batch_header import scan_batches
from quorum.errors import ErrorCode
from quorum.log.filesystem import OsFileSystem
from quorum.v1 import commands_pb2 as wire
from quorum.v1.metadata_pb2 import FetchLogRequest
from statemachine.commands import IncrementalAlterConfigs
from tests.support.lone_server import lone_config

COMMAND = IncrementalAlterConfigs(4, "", ())


class Collector:
    """Takes what a node exports."""

    def __init__(self) -> None:
        self.spans: list[Any] = []
        self.resources: list[dict[str, str]] = []
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                request = ExportTraceServiceRequest.FromString(body)
                for each in request.resource_spans:
                    outer.resources.append(
                        {a.key: a.value.string_value for a in each.resource.attributes}
                    )
                    outer.spans += [span for scope in each.scope_spans for span in scope.spans]
                self.send_response(200)
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/v1/traces"

    def named(self, name: str) -> list[Any]:
        return [span for span in self.spans if span.name == name]


@contextmanager
def collecting() -> Iterator[Collector]:
    collector = Collector()
    thread = threading.Thread(target=collector.server.serve_forever, daemon=True)
    thread.start()
    try:
        yield collector
    finally:
        collector.server.shutdown()
        collector.server.server_close()
        thread.join()


def attributes(span: Any) -> dict[str, object]:
    return {each.key: each.value.string_value or each.value.int_value for each in span.attributes}


def is_sampled(traceparent: str) -> bool:
    return bool(int(traceparent.rpartition("-")[2], 16) & 1)


def client_tracer(sampler: Any = ALWAYS_ON) -> tuple[Any, InMemorySpanExporter]:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(sampler=ParentBased(sampler), shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    return provider.get_tracer("test"), exporter


def run(folder: Path, ratio: float, tracer: Any) -> tuple[Collector, list[str]]:
    """Two writes, of which the second is refused; return spans and the traceparents in the log."""

    async def scenario(collector: Collector) -> list[str]:
        failures: list[BaseException] = []
        with socket.create_server(("localhost", 0)) as found:
            port = found.getsockname()[1]
        tracing = TracingConfig(otlp_endpoint=collector.url, sample_ratio=ratio)
        config = replace(lone_config(folder, shutdown_ms_max=5000, port=port), tracing=tracing)
        node = ServerNode(config, OsFileSystem(), rng=random.Random(1), on_failure=failures.append)
        await node.start()
        address = f"localhost:{port}"
        try:
            async with Client([address], tracer=tracer) as client:
                await client.set_config(BROKER, "", "log.retention.ms", "7")
                with pytest.raises(RefusedError):
                    await client.set_config(TOPIC, "absent", "retention.ms", "7")
                data = await client.fetch_log(FetchLogRequest())
        finally:
            await node.stop()
        assert failures == []
        records = bytes(data.records)
        return [
            found.decode()
            for batch in scan_batches(records)
            if not batch.is_control
            and (found := dict(first_headers(records, batch)).get("traceparent"))
        ]

    with collecting() as collector:
        return collector, asyncio.run(asyncio.wait_for(scenario(collector), 60))


def test_a_write_of_a_traced_client_is_one_trace(tmp_path: Path) -> None:
    tracer, exporter = client_tracer()
    collector, in_log = run(tmp_path, 0.0, tracer)
    first, second = exporter.get_finished_spans()
    trace_id = first.context.trace_id.to_bytes(16, "big")
    commits = {span.trace_id: span for span in collector.named("commit")}
    commit = commits[trace_id]
    assert commit.parent_span_id == first.context.span_id.to_bytes(8, "big")
    (apply,) = collector.named("apply")
    assert (apply.trace_id, apply.parent_span_id) == (trace_id, commit.span_id)
    (traceparent,) = in_log
    assert traceparent.split("-")[1:3] == [trace_id.hex(), commit.span_id.hex()]
    assert is_sampled(traceparent)
    assert attributes(commit)["quorate.result"] == "NONE"
    assert attributes(commit)["quorate.command"] == "IncrementalAlterConfigs"
    assert attributes(apply)["quorate.offset"] == attributes(commit)["quorate.offset"]
    assert first.attributes == {"quorate.command": "incremental_alter_configs"}
    refused = commits[second.context.trace_id.to_bytes(16, "big")]
    assert attributes(refused)["quorate.result"] != "NONE"
    assert not second.status.is_ok
    assert collector.resources[0]["service.name"] == "quorate"
    assert collector.resources[0]["service.instance.id"] == "1"


def test_a_client_that_does_not_sample_is_followed(tmp_path: Path) -> None:
    tracer, exporter = client_tracer(ALWAYS_OFF)
    collector, in_log = run(tmp_path, 1.0, tracer)
    assert exporter.get_finished_spans() == ()
    # The client's own InitProducerId belongs to no write; it begins a trace here.
    own, named = in_log
    assert is_sampled(own)
    assert not is_sampled(named), "the log names the trace of the client"
    assert {attributes(each)["quorate.command"] for each in collector.named("commit")} == {
        "InitProducerId"
    }
    assert len(collector.named("apply")) == 1


def test_a_node_begins_traces_of_its_own_at_its_ratio(tmp_path: Path) -> None:
    collector, in_log = run(tmp_path, 1.0, None)
    assert len(collector.named("commit")) >= 2
    assert [span.trace_id.hex() for span in collector.named("apply")] == [
        each.split("-")[1] for each in in_log
    ]


def test_without_a_trace_and_with_ratio_0_nothing_is_noted(tmp_path: Path) -> None:
    collector, in_log = run(tmp_path, 0.0, None)
    assert (collector.spans, in_log) == ([], [])


def tracing() -> tuple[CommandTracing, InMemorySpanExporter]:
    tracer, exporter = client_tracer(ALWAYS_OFF)
    return CommandTracing(tracer), exporter


@pytest.mark.parametrize("text", ["", "00-1", "x" * 500, "00-" + "0" * 32 + "-" + "0" * 16 + "-01"])
def test_what_is_no_traceparent_begins_no_trace(text: str) -> None:
    made, exporter = tracing()
    context = RequestContext(traceparent=text)
    answers: list[Answer] = []
    pending = PendingCommand(COMMAND, context, each_answer(answers.append))
    made.begin(pending)
    pending.answer = Answer(ErrorCode.NONE)
    pending.on_answers([pending])
    assert pending.context is context
    assert len(answers) == 1
    batch = encode_batch([b"r"], base_offset=0, epoch=1, timestamp=1,
                         headers=((("traceparent", text.encode()),)))  # fmt: skip
    made.applied(batch, 0)
    made.applied(b"traceparent: no batch at all", 0)
    assert exporter.get_finished_spans() == ()


def test_each_command_has_its_own_span_and_none_stays_in_a_cycle() -> None:
    tracer, exporter = client_tracer()
    made = CommandTracing(tracer)
    answers: list[Answer] = []
    receiver = each_answer(answers.append)
    codes = [ErrorCode.NONE, ErrorCode.INVALID_CONFIG, ErrorCode.NONE]
    gc.collect()
    gc.disable()
    try:
        before = pending_commands()
        message = [PendingCommand(COMMAND, RequestContext(), receiver, tag) for tag in range(3)]
        for pending, code in zip(message, codes, strict=True):
            made.begin(pending)
            pending.answer = Answer(code)
        AnswerDelivery().send(message)
        assert pending_commands() == before + len(message)
        del message, pending
        assert pending_commands() == before
    finally:
        gc.enable()
    assert [answer.code for answer in answers] == codes
    results = [(span.attributes or {})["quorate.result"] for span in exporter.get_finished_spans()]
    assert results == [code.name for code in codes]


def pending_commands() -> int:
    return sum(type(each) is PendingCommand for each in gc.get_objects())


def test_an_origin_that_names_a_span_keeps_it() -> None:
    tracer, exporter = client_tracer()
    command = wire.Command(origin=wire.CommandOrigin(traceparent="00-given"))
    with write_span(tracer, command):
        pass
    assert command.origin.traceparent == "00-given"
    assert exporter.get_finished_spans() == ()


def test_no_endpoint_no_tracing_and_a_wrong_one_is_refused() -> None:
    assert command_tracing(TracingConfig(), node_id=1, cluster_id="c") is None
    (problem,) = TracingConfig(otlp_endpoint="collector:4318").problems()
    assert "http(s) URL" in problem
    assert TracingConfig(sample_ratio=1.5).problems()


def test_a_stop_does_not_wait_for_a_collector_that_is_gone() -> None:
    never = threading.Event()
    tracer, _ = client_tracer()
    stopping = threading.Thread(target=CommandTracing(tracer, never.wait).stop)
    stopping.start()
    stopping.join(STOP_S + 20)
    has_stopped = not stopping.is_alive()
    never.set()
    assert has_stopped
