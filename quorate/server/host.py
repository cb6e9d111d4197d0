"""``ServerHost``: the environment that a server process gives its replica, and the messages of
peers.

The shell's loop, timer and writer thread; log lines and metrics for what the replica reports.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable

from metrics.observer import Observer
from quorate.config.server_config import ServerConfig
from quorate.logs import log_event
from quorate.replica.boot import Stores
from quorate.replica.host import ReplicaHost
from quorate.replica.replica import Replica
from quorate.server.checkpoint_pace import paced
from quorate.server.metering import MeteredListener
from quorate.server.tracing import CommandTracing, TracedListener
from quorate.server.worker import Worker
from quorum.core.contract.events import DiskStalled, Event
from quorum.core.contract.local_events import ConnectionRefused, LocalEvent, RequestFailed
from quorum.core.messages.message_types import Received
from quorum.errors import ErrorCode
from quorum.ports import Clock, FileSystem
from quorum.runtime.inline_writer import InlineWriter
from quorum.runtime.ports import Listener, Network, WriteDone
from quorum.runtime.shell import Shell
from quorum.types import NodeId
from snapshot.writer import CheckpointInfo

_log = logging.getLogger(__name__)


class ServerHost(Shell, ReplicaHost):
    """One per server, owned by its event loop. ``network`` and ``replica`` are set once, before
    ``start``.

    ``on_failure`` of the constructor is called once, with what ends the node.
    """

    defers_delivery = True
    executor: Worker
    writer: InlineWriter
    network: Network
    replica: Replica

    def __init__(
        self,
        stores: Stores,
        config: ServerConfig,
        *,
        clock: Clock,
        fs: FileSystem,
        rng: random.Random,
        observer: Observer,
        on_failure: Callable[[BaseException], None],
        tracing: CommandTracing | None = None,
    ) -> None:
        super().__init__(
            Replica.persistence_of(stores),
            clock,
            on_failure=on_failure,
            inline_sync_ms_max=config.log.inline_sync_ms_max,
            stall_ms=config.quorum.disk_stall_ms,
        )
        self.fs = fs
        self.rng = rng
        self.executor = Worker("checkpoint")
        self._observer = observer
        self._tracing = tracing
        self._has_stalled = False
        self._checkpoint_share = config.snapshot.cpu_share
        self._gather_s = config.quorum.high_watermark_delay_ms / 1000
        self._loop.set_exception_handler(self._on_loop_error)

    # ------------------------------------------------------------------ from the transport

    def receive(self, sender: NodeId, message: Received) -> None:
        """A message from a peer."""
        self.guard(self.replica.receive, sender, message)

    def on_refused(self, peer: NodeId) -> None:
        """A peer's process is gone (ADR 8)."""
        self.notify(ConnectionRefused(peer))

    def on_request_failed(
        self,
        peer: NodeId,
        request_id: int,
        refusal: str = "",
        code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        """A request has no answer and will get none."""
        self.notify(RequestFailed(peer, request_id, refusal, code))

    def notify(self, event: LocalEvent) -> None:
        """Report a local event to the core."""
        self.guard(self.replica.on_local_event, event)

    # ------------------------------------------------------------------ from the replica

    def on_event(self, event: Event) -> None:
        """Log it and count it."""
        log_event(event)
        self._observer.on_event(event, time.monotonic())

    def on_fault(self, message: str) -> None:
        """Log it and count it."""
        _log.error("event=replay_fault message=%s", message)
        self._observer.metadata_failed()

    def paced(self, values: Iterable[bytes]) -> Iterable[bytes]:
        """Let the worker's thread take only its share of a core."""
        return paced(values, self._checkpoint_share)

    def on_group(self, batches: int) -> None:
        """Count it."""
        self._observer.group_appended(batches)

    def on_written(self, done: WriteDone) -> None:
        """Note how long the sync took, and on which thread."""
        if done.flushed:
            self._observer.sync_took(done.sync_seconds, is_inline=done.is_inline)
        if self._has_stalled:
            # Counted here, because metrics belong to the loop's thread.
            self._has_stalled = False
            self._observer.on_event(DiskStalled(0), time.monotonic())

    def on_inline_stall(self, waited_ms: int) -> None:
        """Log it: the blocked loop cannot."""
        self._has_stalled = True
        log_event(DiskStalled(waited_ms))

    def on_checkpoint(self, info: CheckpointInfo) -> None:
        """Log it and note how long it took."""
        self._observer.snapshot_generation_took(info.duration_ms / 1000)
        _log.info(
            "event=checkpoint_written snapshot=%s bytes=%d records=%d ms=%d",
            info.snapshot_id, info.size_bytes, info.records, info.duration_ms,
        )  # fmt: skip

    def on_delivery_due(self, is_urgent: bool) -> None:  # noqa: FBT001 - the driver's callback
        """Deliver at once if it is urgent or a caller waits for the image; else gather."""
        delay_s = 0.0 if is_urgent or self.replica.controller.is_awaited else self._gather_s
        self._loop.call_later(delay_s, self.guard, self.replica.deliver)

    def around_listener(self, listener: Listener) -> Listener:
        """Time what the controller does, and open the spans of what it applies."""
        metered = MeteredListener(listener, self._observer)
        return metered if self._tracing is None else TracedListener(metered, self._tracing)

    def _on_loop_error(self, loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException) and not isinstance(error, Exception):
            self.on_failure(error)
            return
        loop.default_exception_handler(context)
