"""The log that all nodes of a quorum in memory share; it stands for the disks of a majority."""

from __future__ import annotations

from dataclasses import dataclass, field

from quorate.controller.requests import Answer, PendingCommand
from quorum.batch import encode_batch, read_header
from quorum.digest import EMPTY_LOG_DIGEST, fold
from quorum.types import LOG_BEGINNING, OffsetAndEpoch
from statemachine.commands import Command

TIMESTAMP = 1_700_000_000_000


@dataclass
class SharedLog:
    """The shared log, with the content that a majority of disks would have."""

    batches: list[bytes] = field(default_factory=list)
    end: int = 0
    start: OffsetAndEpoch = LOG_BEGINNING
    epoch: int = 1
    epoch_start: int = 0
    leader: int | None = None
    answers: dict[tuple[int, int], Answer] = field(default_factory=dict)
    applied: list[Command] = field(default_factory=list)
    next_producer_id: int = 1000
    known_producers: set[int] = field(default_factory=set)
    clock: int = TIMESTAMP

    def append(self, values: list[bytes], headers=(), **fields) -> tuple[int, bytes]:
        batch = encode_batch(
            values,
            base_offset=self.end,
            epoch=self.epoch,
            timestamp=self.clock,
            headers=headers,
            **fields,
        )
        self.batches.append(batch)
        self.end += len(values)
        return self.end, batch

    def digest_at(self, offset: int) -> bytes:
        """The log digest below a boundary of batches; empty elsewhere, and in a trimmed log."""
        digest, end = EMPTY_LOG_DIGEST, 0
        for batch in self.batches:
            if end == offset or read_header(batch).base_offset != end:
                break
            digest, end = fold(digest, batch), read_header(batch).end_offset
        return digest if end == offset else b""

    def truncate(self, end: int) -> None:
        """Cut committed records, as only an unsafe recovery does."""
        self.batches = [b for b in self.batches if read_header(b).base_offset < end]
        self.end = read_header(self.batches[-1]).end_offset if self.batches else self.start.offset

    def trim(self, offset: int) -> None:
        kept = [b for b in self.batches if read_header(b).base_offset >= offset]
        gone = [b for b in self.batches if read_header(b).base_offset < offset]
        self.batches = kept
        self.start = OffsetAndEpoch(offset, read_header(gone[-1]).epoch)


def answer_one(pending: PendingCommand, answer: Answer) -> None:
    """Give a submitted command its answer."""
    pending.answer = answer
    pending.on_answers([pending])
