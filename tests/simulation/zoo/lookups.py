"""Broken ListOffsets: a consumer begins where it must not."""

from __future__ import annotations

from collections.abc import Callable

from quorate.services import log_reads
from quorate.services.log_reads import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, LogReads
from quorum.v1.metadata_pb2 import ListOffsetsRequest, ListOffsetsResponse
from simulation.options import Options
from tests.simulation.zoo.bug import Bug, Patch

_Change = Callable[[LogReads, ListOffsetsResponse], None]


def _change_answer(patch: Patch, timestamp: int, change: _Change) -> None:
    list_offsets = LogReads.list_offsets

    async def changed(reads: LogReads, request: ListOffsetsRequest) -> ListOffsetsResponse:
        found = await list_offsets(reads, request)
        if request.timestamp == timestamp:
            change(reads, found)
        return found

    patch.setattr(LogReads, "list_offsets", changed)


def latest_is_the_end_of_the_log(patch: Patch) -> None:
    """The latest offset is that of records which are not committed."""

    def change(reads: LogReads, answer: ListOffsetsResponse) -> None:
        end = reads.node.log_end
        answer.offset, answer.leader_epoch = end.offset, end.epoch

    _change_answer(patch, LATEST_TIMESTAMP, change)


def latest_with_an_older_epoch(patch: Patch) -> None:
    """The latest offset comes with an epoch below that of the record before it."""

    def change(_reads: LogReads, answer: ListOffsetsResponse) -> None:
        answer.leader_epoch = max(answer.leader_epoch - 1, 0)

    _change_answer(patch, LATEST_TIMESTAMP, change)


def earliest_is_the_first_offset(patch: Patch) -> None:
    """The earliest offset is 0, also where the log was trimmed."""

    def change(_reads: LogReads, answer: ListOffsetsResponse) -> None:
        answer.offset = 0

    _change_answer(patch, EARLIEST_TIMESTAMP, change)


def any_replica_lists_offsets(patch: Patch) -> None:
    """A replica that does not lead answers ListOffsets from its own log."""
    patch.setattr(log_reads, "require_leader", lambda node: None)
    patch.setattr(log_reads, "check_epoch", lambda node, current_leader_epoch: None)


BUGS = (
    Bug(
        "latest-is-the-end-of-the-log",
        latest_is_the_end_of_the_log,
        ("log-consumers", "history"),
        "KIP-320: ListOffsets answers with committed offsets only",
        options=Options("network"),
    ),
    Bug(
        "latest-with-an-older-epoch",
        latest_with_an_older_epoch,
        ("log-consumers", "history"),
        "320.2: every answer with an offset has that record's epoch",
        options=Options("network"),
    ),
    Bug(
        "earliest-is-the-first-offset",
        earliest_is_the_first_offset,
        ("log-consumers", "history"),
        "320.5: a reset never leads below the log start",
        options=Options("network"),
    ),
    Bug(
        "any-replica-lists-offsets",
        any_replica_lists_offsets,
        ("log-consumers", "history"),
        "320.1: lookups are answered by the leader of the caller's epoch",
        options=Options("network"),
    ),
)
