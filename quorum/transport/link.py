"""What every stream of one node shares: who we are, whom we report to, how long we wait."""

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
from quorum.core.messages.message_types import Message
from quorum.supervisor import Supervisor
from quorum.transport.counters import TransportCounters
from quorum.transport.hello import Hello
from quorum.transport.node_names import NodeNames
from quorum.transport.rate_limited_log import RateLimitedLog
from quorum.types import NodeId

SERVICE_NAME: Final = "quorum.v1.RaftService"
EXCHANGE_METHOD: Final = "Exchange"

STREAM_ERRORS: Final[tuple[type[Exception], ...]] = (
    grpc.RpcError,
    aio.UsageError,
    aio.InternalError,
)
"""What reads and writes of a stream raise when it is over."""

_LOGGER = logging.getLogger("quorum.transport")


class PeerHandler(Protocol):
    """The runtime's side. All calls come from the event loop; none may block.

    None raises either, except because we are wrong: that ends the conversation and goes to the
    event loop's exception handler, where the process is stopped.
    """

    def receive(self, sender: NodeId, message: Message) -> None:
        """A request, or the response to one we sent.

        ``sender`` is where ``Network.send`` reaches the author again: the peer's node id, the
        (bootstrap) id a response's request was sent to, or a number below ``ANONYMOUS_BELOW``
        that stands for one unary call or one observer without an id.
        """

    def on_refused(self, peer: NodeId) -> None:
        """An established connection broke and reconnecting was refused (ADR 8)."""

    def on_request_failed(self, peer: NodeId, request_id: int, refusal: str = "") -> None:
        """That request has no answer and will get none.

        ``refusal`` says why one side does not want to talk to the other, if that is the reason.
        """


@dataclass(frozen=True, slots=True)
class Link:
    """Shared by all channels and inbound streams of a node."""

    hello: Hello
    handler: PeerHandler
    request_timeout_s: float
    credentials: Callable[[], grpc.ChannelCredentials] | None = None
    """Asked on every connect, so that renewed certificates are used. None: plain text."""
    names: NodeNames | None = None
    """How certificates name nodes. None: a peer's certificate carries its host name, and a caller
    is believed its id."""
    rng: random.Random = field(default_factory=random.Random)
    """Keeps refused peers from coming back in step; nothing else hangs on it."""
    counters: TransportCounters = field(default_factory=TransportCounters)
    rate_limited_log: RateLimitedLog = field(default_factory=lambda: RateLimitedLog(_LOGGER))
    supervisor: Supervisor = field(default_factory=Supervisor)
    snapshot_response_bytes_max: int = QuorumConfig().snapshot_response_bytes_max
    """Most checkpoint bytes of one FetchSnapshot answer (630.11)."""

    def certificate_name(self, peer: NodeId, host: str) -> str:
        """The name that the certificate of ``peer`` at ``host`` must carry.

        Servers of the configuration (negative ids) are whoever has their host names: what they
        say of themselves is not used, so their number does not matter.
        """
        return host if self.names is None or peer < 0 else self.names.of(peer)

    def deliver(self, sender: NodeId, message: Message) -> None:
        """Hand a message to the runtime; a failure there is not the peer's fault."""
        try:
            self.handler.receive(sender, message)
        except BaseException as error:
            asyncio.get_running_loop().call_exception_handler(
                {"message": f"{type(message).__name__} from {sender} failed", "exception": error}
            )
            raise


def forget_failure(task: asyncio.Task[None]) -> None:
    """For ``add_done_callback`` of a writer: its stream's reader sees the same end and acts."""
    if not task.cancelled():
        task.exception()
