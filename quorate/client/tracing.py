"""Spans of writes, for a program that traces itself with OpenTelemetry.

The client does not import OpenTelemetry: it uses the tracer that the program hands over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Protocol

from quorum.v1.commands_pb2 import Command


class Tracer(Protocol):
    """What is used of ``opentelemetry.trace.Tracer``."""

    def start_as_current_span(self, name: str, /, **options: Any) -> Any:
        """Return a context manager whose value is the span."""


@contextmanager
def write_span(tracer: Tracer, command: Command) -> Iterator[None]:
    """Open the span of a write and name it in the command's origin.

    An origin that names a span already keeps it, and no span is opened.
    """
    if command.HasField("origin") and command.origin.traceparent:
        yield
        return
    kind = command.WhichOneof("kind") or "nothing"
    with tracer.start_as_current_span(
        "write", attributes={"quorate.command": kind}
    ) as span:  # fmt: skip
        found = span.get_span_context()
        if found.is_valid:
            command.origin.traceparent = (
                f"00-{found.trace_id:032x}-{found.span_id:016x}-{int(found.trace_flags):02x}"
            )
        yield
