"""Errors of the client library.

There are three kinds: a refusal (nothing has changed), an unavailable cluster (nothing was sent),
and an unknown outcome (the command may have been applied, or may still be). The last is never
reported as a failure. A mistake in the arguments is found before any of them.
"""

from __future__ import annotations

from typing import NamedTuple

import grpc
from google.protobuf.message import DecodeError, Message
from google.rpc.error_details_pb2 import ErrorInfo
from google.rpc.status_pb2 import Status

from quorate.client.results.errors import KnownProducer, LeaderHint, OffsetBounds
from quorum.v1 import common_pb2
from quorum.v1 import errors_pb2 as wire

ERROR_DOMAIN = "quorate"
METADATA_LOG = ("__cluster_metadata", 0)
"""Topic and partition of the log."""
DETAILS_KEY = "grpc-status-details-bin"
_PREFIX = "ERROR_CODE_"
_HOPELESS = {
    grpc.StatusCode.RESOURCE_EXHAUSTED: int(common_pb2.ERROR_CODE_MESSAGE_TOO_LARGE),
    grpc.StatusCode.UNAUTHENTICATED: int(common_pb2.ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED),
    grpc.StatusCode.PERMISSION_DENIED: int(common_pb2.ERROR_CODE_CLUSTER_AUTHORIZATION_FAILED),
}
"""Statuses of gRPC itself that a retry would get again."""


class ClientError(Exception):
    """The base of everything that the client library raises on purpose."""


class InvalidArgumentError(ClientError, TypeError, ValueError):
    """An argument of a call has a wrong type or value. Nothing was sent."""


class OutcomeUnknownError(ClientError):
    """A command was sent and its outcome is not known: it may have been applied."""


class UnavailableError(ClientError):
    """No node could be asked before the deadline. A command reported so was never sent."""


class ProtocolError(ClientError):
    """A server's answer violates the protocol."""


class RefusedError(ClientError):
    """The cluster refused a request; nothing has changed, and nothing will.

    ``code`` is the protocol's number, ``code_name`` its name, ``text`` the reason. ``producer`` is
    what the cluster still knows of the producer because of which it refused the command (360.6).
    """

    def __init__(
        self,
        code: int,
        message: str,
        *,
        leader: LeaderHint | wire.LeaderHint | None = None,
        producer: KnownProducer | wire.KnownProducer | None = None,
    ) -> None:
        self.code = code
        self.code_name = code_name(code)
        self.leader = LeaderHint.of(leader) if isinstance(leader, wire.LeaderHint) else leader
        self.producer = (
            KnownProducer.of(producer) if isinstance(producer, wire.KnownProducer) else producer
        )
        self.text = message
        super().__init__(f"{self.code_name}: {message}")


class LogIncarnationError(RefusedError):
    """The log was recovered or restored: it is another incarnation than the caller knows (ADR 65).

    Nothing has changed. What was read before may be gone: a consumer's next ``poll`` verifies its
    position in the new incarnation. Nodes are formatted again.
    """

    def __init__(self, message: str) -> None:
        super().__init__(common_pb2.ERROR_CODE_LOG_INCARNATION_MISMATCH, message)


class NotServedError(RefusedError):
    """No service takes the call at this address. Nothing has changed.

    It is no node's port for clients (a proxy's, or ``listeners.peer``), or an older node's. The
    code is UNSUPPORTED_VERSION.
    """

    def __init__(self, address: str = "") -> None:
        super().__init__(
            common_pb2.ERROR_CODE_UNSUPPORTED_VERSION,
            f"{address or 'the address'} does not serve this call: it is not the port for clients "
            "of a node, or the node is older than this client",
        )


class ProducerFencedError(RefusedError):
    """Another process took the writer's name: this one is fenced for ever (360.1).

    The code is PRODUCER_FENCED. No node sends it: to a named writer INVALID_PRODUCER_EPOCH means
    that. Nothing of this process is applied any more.
    """

    def __init__(
        self,
        writer: str,
        message: str,
        *,
        producer: KnownProducer | wire.KnownProducer | None = None,
    ) -> None:
        super().__init__(common_pb2.ERROR_CODE_PRODUCER_FENCED, message, producer=producer)
        self.writer = writer


class PrecedingWriteFailedError(ClientError):
    """An earlier write of an ordered client failed, so this one was not applied (360.6).

    ``cause`` is the error of the first write that failed.
    """

    def __init__(self, cause: ClientError) -> None:
        self.cause = cause
        super().__init__(f"an earlier write failed, so this one was not applied: {cause}")


class OffsetOutOfRangeError(RefusedError):
    """The offset is outside the log. ``bounds`` are the readable offsets, where known."""

    def __init__(
        self, message: str, *, bounds: OffsetBounds | wire.OffsetBounds | None = None
    ) -> None:
        super().__init__(common_pb2.ERROR_CODE_OFFSET_OUT_OF_RANGE, message)
        self.bounds = OffsetBounds.of(bounds) if isinstance(bounds, wire.OffsetBounds) else bounds


class TruncationOffset(NamedTuple):
    """The first record of one partition that was read and is no longer in the log."""

    offset: int
    epoch: int
    """Leader epoch under which that record was read; -1 if not known."""
    is_exact: bool
    """If false, the first such record is at ``offset`` or before it."""


class LogTruncationError(OffsetOutOfRangeError):
    """Records that were read are no longer part of the log (320.4).

    ``divergent_offset`` is the first offset whose record differs, ``divergent_epoch`` the epoch
    of the record before it, -1 where that is not known. ``is_exact`` is false where the reader
    does not know the epochs it has read, the log no longer has them, or digests contradict them:
    then the first difference is there or before. ``lost_epoch`` is the epoch under which the first
    differing record was read, -1 where that is not known.
    """

    def __init__(
        self,
        message: str,
        *,
        divergent_offset: int,
        divergent_epoch: int,
        is_exact: bool = False,
        lost_epoch: int = -1,
        bounds: OffsetBounds | wire.OffsetBounds | None = None,
    ) -> None:
        super().__init__(message, bounds=bounds)
        self.is_exact = is_exact
        self.divergent_offset = divergent_offset
        self.divergent_epoch = divergent_epoch
        self.lost_epoch = lost_epoch

    def truncation_offsets(self) -> dict[tuple[str, int], TruncationOffset]:
        """Return the first record that was lost, by topic and partition, as Kafka's exception does.

        The metadata log is one partition, so there is one entry.
        """
        found = TruncationOffset(self.divergent_offset, self.lost_epoch, self.is_exact)
        return {METADATA_LOG: found}


class WatchLaggedError(RefusedError):
    """A watch was ended because its reader was too slow; resume from ``resume_offset``."""

    def __init__(self, message: str, *, resume_offset: int, resume_epoch: int) -> None:
        super().__init__(common_pb2.ERROR_CODE_RESOURCE_EXHAUSTED, message)
        self.resume_offset = resume_offset
        self.resume_epoch = resume_epoch


def code_name(code: int) -> str:
    """The protocol's name of a code; unknown numbers are UNKNOWN_SERVER_ERROR."""
    try:
        name: str = common_pb2.ErrorCode.Name(code)
    except ValueError:
        return "UNKNOWN_SERVER_ERROR"
    return name.removeprefix(_PREFIX)


def code_number(name: str) -> int:
    """The number of a code by its name without prefix; unknown names are -1."""
    try:
        return int(common_pb2.ErrorCode.Value(_PREFIX + name))
    except ValueError:
        return int(common_pb2.ERROR_CODE_UNKNOWN_SERVER_ERROR)


def from_rpc(error: grpc.RpcError) -> ClientError:
    """The client's error for a call that gRPC reports as failed.

    A status without our details comes from gRPC itself. It usually means that the node is
    unreachable; a few codes mean that a retry is useless.
    """
    status = _status_of(error)
    if status is None:
        if not isinstance(error, grpc.aio.AioRpcError):
            return UnavailableError(str(error))
        if error.code() is grpc.StatusCode.UNIMPLEMENTED:
            return NotServedError()
        code = _HOPELESS.get(error.code())
        if code is not None:
            return RefusedError(code, str(error.details()))
        return UnavailableError(f"{error.code().name}: {error.details()}")
    info, leader, bounds = ErrorInfo(), wire.LeaderHint(), wire.OffsetBounds()
    divergence, producer = wire.DivergenceHint(), wire.KnownProducer()
    found: set[type[Message]] = set()
    for detail in status.details:
        for target in (info, leader, bounds, divergence, producer):
            if detail.Is(target.DESCRIPTOR):
                detail.Unpack(target)
                found.add(type(target))
    code = code_number(info.reason) if info.domain == ERROR_DOMAIN else -1
    given_bounds = OffsetBounds.of(bounds) if wire.OffsetBounds in found else None
    if wire.DivergenceHint in found:
        return LogTruncationError(
            status.message,
            divergent_offset=divergence.offset,
            divergent_epoch=divergence.epoch,
            bounds=given_bounds,
        )
    if code == common_pb2.ERROR_CODE_OFFSET_OUT_OF_RANGE:
        return OffsetOutOfRangeError(status.message, bounds=given_bounds)
    if code == common_pb2.ERROR_CODE_RESOURCE_EXHAUSTED and given_bounds is not None:
        return WatchLaggedError(
            status.message,
            resume_offset=bounds.resume_offset,
            resume_epoch=bounds.resume_epoch,
        )
    if code == common_pb2.ERROR_CODE_OUTCOME_UNKNOWN:
        return OutcomeUnknownError(status.message)
    return refused(
        code,
        status.message,
        leader=leader if wire.LeaderHint in found else None,
        producer=producer if wire.KnownProducer in found else None,
    )


def refused(
    code: int,
    message: str,
    *,
    leader: LeaderHint | wire.LeaderHint | None = None,
    producer: KnownProducer | wire.KnownProducer | None = None,
) -> RefusedError:
    """Return the error of a refusal: of its own class if the code has one."""
    if code == common_pb2.ERROR_CODE_LOG_INCARNATION_MISMATCH:
        return LogIncarnationError(message)
    return RefusedError(code, message, leader=leader, producer=producer)


def _status_of(error: grpc.RpcError) -> Status | None:
    metadata = error.trailing_metadata() if isinstance(error, grpc.aio.AioRpcError) else None
    for key, value in metadata or ():
        if key == DETAILS_KEY:
            try:
                return Status.FromString(value)
            except DecodeError:
                return None
    return None
