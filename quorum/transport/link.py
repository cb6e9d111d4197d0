"""What every stream of one node shares: our identity, the handler, time limits, credentials."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final, Protocol

import grpc
from grpc import aio

from quorum.config import QuorumConfig
from quorum.core.messages.message_types import Received, ReceivedRequest
from quorum.errors import ErrorCode
from quorum.supervisor import Supervisor
from quorum.transport.counters import TransportCounters
from quorum.transport.hello import Hello
from quorum.transport.node_names import NodeNames
from quorum.transport.rate_limited_log import RateLimitedLog
from quorum.transport.security import TlsIdentity
from quorum.transport.tcp_connection import ConnectionEndedError
from quorum.types import NodeId

SERVICE_NAME: Final = "quorum.v1.RaftService"
EXCHANGE_METHOD: Final = "Exchange"

STREAM_ERRORS: Final[tuple[type[Exception], ...]] = (
    grpc.RpcError,
    aio.UsageError,
    aio.InternalError,
    ConnectionEndedError,
)
"""What reads and writes raise on a stream that is over."""

_LOGGER = logging.getLogger("quorum.transport")


class PeerHandler(Protocol):
    """The runtime's side. All calls come from the event loop; none may block.

    An exception from a call is a bug of ours. It ends the conversation and goes to the
    event loop's exception handler, which stops the process.
    """

    def receive(self, sender: NodeId, message: Received) -> None:
        """Take a request, or the response to a request of ours.

        ``Network.send(sender, …)`` reaches the author. ``sender`` is the peer's node id, the
        (bootstrap) id a response's request was sent to, or a number below ``ANONYMOUS_BELOW``
        for one unary call or one observer without an id.
        """

    def on_refused(self, peer: NodeId) -> None:
        """Take note that an established connection broke and reconnecting was refused (ADR 8)."""

    def on_request_failed(
        self,
        peer: NodeId,
        request_id: int,
        refusal: str = "",
        code: ErrorCode = ErrorCode.NONE,
    ) -> None:
        """Take note that a request has no answer and will get none.

        ``refusal`` is the reason why one side refuses to talk to the other; else empty.
        """


@dataclass(frozen=True, slots=True)
class Link:
    """Shared by all channels and inbound streams of a node."""

    hello: Hello
    handler: PeerHandler
    request_timeout_s: float
    tls: TlsIdentity | None = None
    """Asked on every connect, so that renewed certificates are used. None: plain text."""
    names: NodeNames | None = None
    """How certificates name nodes. None: a peer's certificate carries its host name, and a
    caller's node id is not verified."""
    certificate_problem: Callable[[bytes], str] | None = None
    """Returns why the certificate (DER) of a node is not accepted any more; empty while it is.
    Asked when a stream to it is opened, and as long as it is open. None: there is no list of
    revoked certificates."""
    rng: random.Random = field(default_factory=random.Random)
    """Spreads the retries of refused peers over time; used for nothing else."""
    counters: TransportCounters = field(default_factory=TransportCounters)
    rate_limited_log: RateLimitedLog = field(default_factory=lambda: RateLimitedLog(_LOGGER))
    supervisor: Supervisor = field(default_factory=Supervisor)
    snapshot_response_bytes_max: int = QuorumConfig().snapshot_response_bytes_max
    """Most checkpoint bytes of one FetchSnapshot answer (630.11)."""

    def certificate_name(self, peer: NodeId, host: str) -> str:
        """Return the name that the certificate of ``peer`` at ``host`` must carry.

        Bootstrap servers (negative ids) need a certificate for their host name only: the node
        id that they present is not checked.
        """
        return host if self.names is None or peer < 0 else self.names.of(peer)

    def deliver(self, sender: NodeId, message: Received) -> None:
        """Pass a message to the runtime; report a failure there as ours, not as the peer's."""
        try:
            self.handler.receive(sender, message)
        except BaseException as error:
            inner = message.request if isinstance(message, ReceivedRequest) else message
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"{type(inner).__name__} from {sender} failed", "exception": error}
            )
            raise


def forget_failure(task: asyncio.Task[None]) -> None:
    """Retrieve a writer task's exception (``add_done_callback``); its reader handles the end."""
    if not task.cancelled():
        task.exception()
