"""``Client``: everything a program can ask of a Quorate cluster, over one asyncio loop.

    async with Client(["node1:9093", "node2:9093"]) as client:
        await client.set_config(TOPIC, "orders", "retention.ms", "3600000")

Writes share one stream to the leader and are applied at most once; queries go to any node
unless their read level wants the leader. Nothing here is tied to a program's other loops or
threads: make one client per event loop.
"""

from __future__ import annotations

import random
from collections.abc import AsyncGenerator, Callable, Sequence
from types import TracebackType
from typing import Self

import grpc

from quorate.client.caller import Caller
from quorate.client.credentials import DEFAULT_MECHANISM
from quorate.client.errors import ProtocolError
from quorate.client.limits import TEXT_BYTES_MAX, WRITER_NAME_MAX
from quorate.client.log_consumer import LogConsumer, ResetPolicy
from quorate.client.operations import Operations
from quorate.client.pending import Pending
from quorate.client.producer_sessions import PRODUCER_SESSIONS_MAX, ProducerSessions
from quorate.client.proof import Proof, nodes_for
from quorate.client.results.metadata import StateChunk
from quorate.client.search import FoundStream, LeaderSearch
from quorate.client.single_producer import SingleProducer
from quorate.client.timeouts import default_timeout
from quorate.client.tracing import Tracer
from quorate.client.watch import Watch
from quorate.client.writer import Writer
from quorate.client.writes import Writes
from quorum.log_position import LogPosition
from quorum.v1.metadata_pb2 import WriterIdentity

TIMEOUT_SECONDS = 30.0
"""Default time for a write or a query, fail-over included."""
STALL_SECONDS = 2.0
"""Seconds of silence after which a stream with open requests is replaced by another node's."""


class Client(Writes, Operations):
    """One connection to a cluster. Construct and use it on one running event loop.

    Args:
        addresses: ``host:port`` of some nodes; the others are learnt from answers.
        client_id: Goes into the audit trail with every write.
        reason: Why this program writes; the origin of a command may add to it.
        credentials: TLS; None connects in clear text.
        user: Proves ``password`` to each node (SCRAM); it is never sent. Both need ``credentials``.
        mechanism: ``SCRAM-SHA-256`` or ``SCRAM-SHA-512``, as the user's credential is.
        token: A JSON Web Token, or what returns the current one for each call, in place of a
            password.
        writer: Name of this writer, kept over restarts of the process. The newest process with
            the name writes; each earlier one gets ``ProducerFencedError``. See ADR 68.
        ordered: Apply writes in the order of their submission, up to the first one that fails:
            every later one fails too, until ``begin_epoch``.
        producer_sessions_max: Most producers, each with 32 commands in flight. A named or an
            ordered client has one.
        cluster_id: Nodes of any other cluster are ignored; empty takes the id that the first
            answer names.
        log_incarnation: Id of the incarnation of the log that writes are for, 16 bytes: no leader
            of another one gets them. Empty: any that is not older than one that was met.
        tracer: Of OpenTelemetry; each write is a span, whose trace goes on in the cluster.
    """

    def __init__(  # noqa: PLR0913 - options of the program, by keyword
        self,
        addresses: Sequence[str],
        *,
        client_id: str = "",
        reason: str = "",
        credentials: grpc.ChannelCredentials | None = None,
        writer: str = "",
        ordered: bool = False,
        user: str = "",
        password: str = "",
        mechanism: str = DEFAULT_MECHANISM,
        token: str | Callable[[], str] = "",
        timeout_seconds: float = TIMEOUT_SECONDS,
        stall_seconds: float = STALL_SECONDS,
        producer_sessions_max: int = PRODUCER_SESSIONS_MAX,
        cluster_id: str = "",
        log_incarnation: bytes = b"",
        tracer: Tracer | None = None,
    ) -> None:
        if max(len(client_id), len(reason)) > TEXT_BYTES_MAX:
            raise ValueError(f"client_id and reason are limited to {TEXT_BYTES_MAX} characters")
        if len(writer) > WRITER_NAME_MAX:
            raise ValueError(f"a writer's name is limited to {WRITER_NAME_MAX} characters")
        timeout_seconds = default_timeout(timeout_seconds)
        producers: ProducerSessions[Pending] = (
            SingleProducer(writer, is_ordered=ordered)
            if writer or ordered
            else ProducerSessions(producer_sessions_max=producer_sessions_max)
        )
        rng = self._rng = random.Random()
        self._client_id = client_id
        self._state_seconds_max = timeout_seconds
        self._identity = WriterIdentity(
            client_id=client_id, reason=reason, log_incarnation=log_incarnation
        )
        proof = Proof(user, password, mechanism, token)
        self._nodes = nodes_for(addresses, credentials, proof, cluster_id=cluster_id)
        caller = self._caller = Caller(self._nodes, rng=rng)
        write_side = Writer(
            self._nodes, self._identity, stall_seconds=stall_seconds, rng=rng, producers=producers
        )
        Writes.__init__(self, write_side, timeout_seconds=timeout_seconds, tracer=tracer)
        Operations.__init__(
            self, self._nodes, caller, timeout_seconds=timeout_seconds, rng=rng, reason=reason
        )

    @property
    def leader(self) -> str | None:
        """Last known address of the leader."""
        return self._nodes.leader

    def watch(
        self,
        *,
        from_offset: int | None = None,
        from_epoch: int = -1,
        position: LogPosition | None = None,
        may_restart: bool = True,
        outage_seconds_max: float = float("inf"),
        typed: bool = False,
    ) -> Watch:
        """The state and then its changes, or the changes from an offset on.

        An offset below the log start begins with a state, unless ``may_restart`` is false. One
        beyond the log's end is refused with ``OffsetOutOfRangeError``.

        With ``typed``, events have ``typed_records`` (values of records.proto) in place of
        ``records``, which are encoded as in the log.

        ``position`` is a stored one, ``Watch.position`` or a consumer's; it includes the offset.
        """
        if position is None and from_offset is not None:
            position = LogPosition(from_offset, from_epoch)
        return Watch(
            self._nodes,
            self._caller,
            client_id=self._client_id,
            position=position,
            may_restart=may_restart,
            outage_seconds_max=outage_seconds_max,
            typed=typed,
        )

    def consumer(
        self,
        *,
        reset: ResetPolicy = ResetPolicy.EARLIEST,
        position: LogPosition | None = None,
        verify_checksums: bool = True,
        max_bytes: int = 0,
        typed: bool = False,
    ) -> LogConsumer:
        """A reader of the log's records, from a stored position or as ``reset`` says.

        With ``typed``, records have ``typed`` (a value of records.proto) in place of ``value``. The
        node decodes them, so there are no checksums to verify.
        """
        return LogConsumer(
            self,
            reset=reset,
            position=position,
            verify_checksums=verify_checksums,
            max_bytes=max_bytes,
            typed=typed,
        )

    async def read_state(
        self, *, at_least_offset: int = 0, of_checkpoint: bool = False, typed: bool = False
    ) -> AsyncGenerator[StateChunk]:
        """Yield the whole state of some node at or above an offset, part by part.

        With ``of_checkpoint`` it is the state of that node's lowest checkpoint there; the present
        one if it has none. Chunk 0 means: forget what came before, the state begins (again).

        Raises:
            UnavailableError: No node had it in time.
        """
        watch = Watch(
            self._nodes,
            self._caller,
            client_id=self._client_id,
            outage_seconds_max=self._state_seconds_max,
            state_at_least=at_least_offset,
            of_checkpoint=of_checkpoint,
            typed=typed,
        )
        events = aiter(watch)
        try:
            async for event in events:
                if not isinstance(event, StateChunk):
                    raise ProtocolError("changes before the end of the state")
                yield event
                if event.is_last:
                    return
        finally:
            await events.aclose()

    async def find_stream(self) -> FoundStream:
        """A write stream of the leader's, for a caller that makes its commands idempotent itself.

        Commands without a producer are evaluated in the order they are sent in. Goes on until a
        leader is found; the caller ends the stream, by ``call.cancel`` at the latest.
        """
        return await LeaderSearch(self._nodes, self._identity, rng=self._rng).find()

    async def close(self) -> None:
        """End all calls. Pending writes end at once with ``OutcomeUnknownError``.

        Then the write stream is closed in order, so that the event loop may be closed afterwards.
        An unresponsive node delays this by at most one second.
        """
        await self._writer.close()
        await self._caller.close()
        await self._nodes.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()
