"""Commit the positions of consumers, alone or together with a command (KIP-320, KIP-447).

A command and a position in one batch make read-process-write exactly once: either both are in the
log or neither is, and a process that was replaced under its writer's name is refused by its epoch.
"""

from __future__ import annotations

from itertools import pairwise

from quorum.errors import CommandError, ErrorCode
from quorum.types import uuid_to_text
from statemachine.commands import CommitPosition, ImportBatch, WithPosition
from statemachine.prepare.context import EvaluationContext, Prepared
from statemachine.prepare.view import View
from statemachine.records import CommittedPositionRecord, PositionEpoch

GROUP_LENGTH_MAX = 255
METADATA_LENGTH_MAX = 4_096
"""``offset.metadata.max.bytes``."""
POSITION_EPOCHS_MAX = 128
"""Epochs in a committed position; clients keep the newest."""
DIGEST_LENGTHS = (0, 16)
LEADER_EPOCH_MAX = (1 << 31) - 1


def prepare_commit_position(
    view: View, command: CommitPosition, context: EvaluationContext
) -> Prepared:
    """Return the record that sets a group's position; it renews the position's expiry.

    Raises:
        CommandError: INVALID_REQUEST for a position that no consumer can have,
            LOG_INCARNATION_MISMATCH for one in another incarnation of the log.
    """
    del view
    _check(command)
    _check_incarnation(command, context)
    record = CommittedPositionRecord(
        command.group,
        command.offset,
        command.leader_epoch,
        tuple(PositionEpoch(e.epoch, e.start_offset, e.log_digest) for e in command.epochs),
        command.log_digest,
        command.log_incarnation,
        command.metadata,
        context.wall_ms,
    )
    return Prepared([record])


def with_position(prepared: Prepared, committed: Prepared) -> Prepared:
    """Return the result of a command with the record of a position behind its own records."""
    return Prepared(
        [*prepared.records, *committed.records],
        prepared.result,
        prepared.session,
        prepared.headers,
        is_foreign=prepared.is_foreign,
    )


def check_combination(command: WithPosition) -> None:
    """Refuse a command that cannot share its batch.

    Raises:
        CommandError: INVALID_REQUEST.
    """
    kind = type(command.command)
    if kind in (CommitPosition, ImportBatch):
        raise CommandError(
            ErrorCode.INVALID_REQUEST, f"{kind.__name__} cannot be combined with a position"
        )
    if command.position.dry_run != command.command.dry_run:
        raise CommandError(
            ErrorCode.INVALID_REQUEST, "dry_run of the command and of its position differ"
        )


def _check_incarnation(command: CommitPosition, context: EvaluationContext) -> None:
    """Refuse a position that was not verified in this incarnation of the log.

    What was read there may be gone, and what follows from it must not be written (ADR 65).
    """
    read, log = command.log_incarnation, context.log_incarnation
    if read and log and read != log:
        raise CommandError(
            ErrorCode.LOG_INCARNATION_MISMATCH,
            f"the position is in incarnation {uuid_to_text(read)} of the log, this log is "
            f"incarnation {uuid_to_text(log)}: poll once, so that the consumer verifies its "
            "position, and process again from there",
        )


def _check(command: CommitPosition) -> None:
    problem = ""
    entries = command.epochs
    if not 0 < len(command.group) <= GROUP_LENGTH_MAX:
        problem = f"a group has 1 to {GROUP_LENGTH_MAX} characters, not {len(command.group)}"
    elif command.offset < 0 or not -1 <= command.leader_epoch <= LEADER_EPOCH_MAX:
        problem = f"no position: offset {command.offset}, leader epoch {command.leader_epoch}"
    elif len(command.metadata.encode("utf-8", "replace")) > METADATA_LENGTH_MAX:
        problem = f"metadata of a position has at most {METADATA_LENGTH_MAX} bytes"
    elif len(entries) > POSITION_EPOCHS_MAX:
        problem = f"{len(entries)} epochs in one position, more than {POSITION_EPOCHS_MAX}"
    elif any(
        low.epoch >= high.epoch or low.start_offset >= high.start_offset
        for low, high in pairwise(entries)
    ) or any(
        not 0 <= e.epoch <= LEADER_EPOCH_MAX or not 0 <= e.start_offset < command.offset
        for e in entries
    ):
        problem = "the epochs of a position must rise, and begin below its offset"
    elif any(
        len(each) not in DIGEST_LENGTHS
        for each in (command.log_digest, command.log_incarnation, *(e.log_digest for e in entries))
    ):
        problem = "digests and incarnations have 16 bytes, or none"
    if problem:
        raise CommandError(ErrorCode.INVALID_REQUEST, problem)
