"""Traces of commands: from the client over the commit on the leader to every replica's image.

A command carries a W3C ``traceparent``. The leader opens the span ``commit`` below it and writes
the span's own traceparent into the record's audit context. So each replica that applies the record,
the leader included, opens its span ``apply`` below ``commit``, and the log names the trace.
Commands without a sampled parent begin a trace at ``tracing.sample_ratio``; what is not sampled
costs one decision on the leader and one search of the bytes on a replica.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from quorate.config.tracing import TracingConfig
from quorate.controller.requests import PendingCommand
from quorum.batch_decode import first_headers
from quorum.batch_header import VerifiedBatches, scan_batches
from quorum.errors import ConfigError, CorruptBatchError, ErrorCode
from quorum.runtime.ports import Listener

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer

HEADER: Final = "traceparent"
APPLIED_MAX: Final = 64
"""Spans of one applied range, at most."""
STOP_S: Final = 1.0
"""How long the last spans may take to leave."""


class CommandTracing:
    """Opens the spans of one node. ``begin`` belongs to the event loop, as ``applied`` does."""

    def __init__(self, tracer: Tracer, stop: Callable[[], None] = lambda: None) -> None:
        # Loaded here, because a node without traces needs no OpenTelemetry.
        from opentelemetry import trace
        from opentelemetry.trace.propagation import tracecontext

        self._trace = trace
        self._propagator = tracecontext.TraceContextTextMapPropagator()
        self._tracer = tracer
        self._stop = stop

    def begin(self, pending: PendingCommand) -> None:
        """Begin the span of a command that is to be submitted; it ends with the answer.

        The command's context names the span then, unless it is not sampled.
        """
        context, on_answers = pending.context, pending.on_answers
        span = self._tracer.start_span(
            "commit",
            context=self._parent(context.traceparent),
            kind=self._trace.SpanKind.SERVER,
            attributes={"quorate.command": type(pending.command).__name__},
        )
        if not span.is_recording():
            return
        span.set_attribute("quorate.client_id", context.client_id)

        def end(answered: Sequence[PendingCommand]) -> None:
            # Of this command alone. To refer to ``pending`` from here would be a cycle.
            answer = answered[0].answer
            span.set_attribute("quorate.result", answer.code.name)
            span.set_attribute("quorate.offset", answer.offset)
            span.set_attribute("quorate.epoch", answer.epoch)
            if answer.code is not ErrorCode.NONE:
                span.set_status(self._trace.StatusCode.ERROR, answer.message)
            span.end()
            on_answers(answered)

        carrier: dict[str, str] = {}
        self._propagator.inject(carrier, self._trace.set_span_in_context(span))
        pending.context = replace(context, traceparent=carrier[HEADER])
        pending.on_answers = end

    def applied(self, data: bytes, began_ns: int) -> None:
        """Note that the batches of ``data`` are in the image; they began to be applied then."""
        if HEADER.encode() not in data:
            return
        ended_ns = time.time_ns()
        for traceparent, offset in _traced(data)[:APPLIED_MAX]:
            parent = self._parent(traceparent)
            if not self._trace.get_current_span(parent).get_span_context().trace_flags.sampled:
                continue
            span = self._tracer.start_span(
                "apply",
                context=parent,
                kind=self._trace.SpanKind.CONSUMER,
                attributes={"quorate.offset": offset},
                start_time=began_ns,
            )
            span.end(ended_ns)

    def stop(self) -> None:
        """Send what is left, within ``STOP_S``; blocks, and loses the rest if nobody takes it."""
        # The library waits for its own time-outs, of up to half a minute.
        last = threading.Thread(target=self._stop, name="traces", daemon=True)
        last.start()
        last.join(STOP_S)

    def _parent(self, traceparent: str) -> Any:
        """Return a context below this span; one without a parent for text that is none."""
        root = self._trace.set_span_in_context(self._trace.INVALID_SPAN)
        return self._propagator.extract({HEADER: traceparent}, root) if traceparent else root


class TracedListener:
    """A ``Listener`` that opens a span for each traced record that the one behind it applies."""

    def __init__(self, listener: Listener, tracing: CommandTracing) -> None:
        self._listener = listener
        self._tracing = tracing
        self.on_leadership = listener.on_leadership
        self.on_truncated = listener.on_truncated
        self.on_read_confirmed = listener.on_read_confirmed
        self.on_read_failed = listener.on_read_failed
        self.on_snapshot = listener.on_snapshot

    def on_committed(
        self, data: bytes, end_offset: int, verified: Sequence[VerifiedBatches] = ()
    ) -> None:
        """Apply one committed range."""
        began_ns = time.time_ns()
        self._listener.on_committed(data, end_offset, verified)
        self._tracing.applied(data, began_ns)


def _traced(data: bytes) -> list[tuple[str, int]]:
    """Return the traceparent and the end offset of each batch that has one."""
    found = []
    try:
        for batch in scan_batches(data, verify_crc=False):
            if not batch.is_control:
                headers = dict(first_headers(data, batch))
                value = headers.get(HEADER)
                if value:
                    found.append((value.decode("ascii", "replace"), batch.end_offset))
    except CorruptBatchError:
        # The replica itself decides what becomes of it.
        return found
    return found


def command_tracing(
    config: TracingConfig, *, node_id: int, cluster_id: str
) -> CommandTracing | None:
    """Return what the configuration asks for; None without an endpoint.

    Raises:
        ConfigError: OpenTelemetry is not installed.
    """
    if not config.otlp_endpoint:
        return None
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.resources import Resource
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
        from opentelemetry.sdk.trace.sampling import ParentBased, TraceIdRatioBased
    except ImportError as error:
        raise ConfigError(
            ["tracing.otlp_endpoint needs OpenTelemetry: install the extra `otel`"]
        ) from error
    provider = TracerProvider(
        sampler=ParentBased(TraceIdRatioBased(config.sample_ratio)),
        resource=Resource.create(
            {
                "service.name": "quorate",
                "service.instance.id": str(node_id),
                "quorate.cluster_id": cluster_id,
            }
        ),
        shutdown_on_exit=False,
    )
    # Its queue is bounded; spans beyond it are dropped.
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(config.otlp_endpoint)))
    return CommandTracing(provider.get_tracer("quorate"), provider.shutdown)
