"""The incarnation of this node's log, as answers name it, and callers that know another one.

A former voter has the log of an incarnation that was lost, and cannot know of the recovery. So
those who can say which incarnation they know, and a node of another one refuses them.

See: ADR 65 (incarnations), ADR 78.
"""

from __future__ import annotations

from quorate.services.errors import RequestRefusedError
from quorate.services.ports import KnownLog
from quorum.errors import CommandError, ErrorCode
from quorum.types import uuid_to_text
from quorum.v1.metadata_pb2 import WriterIdentity

_FORMER = "a former voter is formatted again (docs/operations/recover.md)"


def incarnation_bytes(node: KnownLog) -> bytes:
    """Return the id of the log's incarnation as responses have it: empty for the first one."""
    incarnation_id = node.log_incarnation.id
    return incarnation_id if any(incarnation_id) else b""


def check_reader(node: KnownLog, newest_met: int) -> None:
    """Refuse a reader that has met a newer incarnation of the log than this one, by its number.

    This is then a former voter, or a new node that has not copied that far.

    Raises:
        RequestRefusedError: LOG_INCARNATION_MISMATCH.
    """
    own = node.log_incarnation
    if newest_met > own.number:
        raise RequestRefusedError(
            ErrorCode.LOG_INCARNATION_MISMATCH,
            f"the log of this node is incarnation {own.number}, and the reader has met "
            f"incarnation {newest_met}: read from a node of that one; {_FORMER}",
        )


def check_writer(node: KnownLog, writer: WriterIdentity) -> None:
    """Refuse a writer that follows another incarnation of the log, or has met a newer one.

    Writers of former releases name none.

    Raises:
        RequestRefusedError: LOG_INCARNATION_MISMATCH, without a hint to the leader: whom this
            node follows has the same log.
        CommandError: INVALID_REQUEST, the id has another length.
    """
    own, followed = node.log_incarnation, writer.log_incarnation
    if len(followed) not in (0, len(own.id)):
        raise CommandError(
            ErrorCode.INVALID_REQUEST,
            f"log_incarnation has {len(followed)} bytes; it has {len(own.id)}, or none",
        )
    if followed and followed != own.id:
        raise RequestRefusedError(
            ErrorCode.LOG_INCARNATION_MISMATCH,
            f"the log of this node is incarnation {uuid_to_text(own.id)}, and the writer follows "
            f"{uuid_to_text(followed)}: write to a node of that one; {_FORMER}",
        )
    if writer.log_incarnation_number > own.number:
        raise RequestRefusedError(
            ErrorCode.LOG_INCARNATION_MISMATCH,
            f"the log of this node is incarnation {own.number}, and the writer has met "
            f"incarnation {writer.log_incarnation_number}: write to a node of that one; {_FORMER}",
        )
