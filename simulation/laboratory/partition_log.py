"""One replica's log of a data partition: the log of the quorum, and its producers.

The segments, the epoch history and the rules of sequences are production code. Each batch has one
record.

See: KIP-101, KIP-279, KIP-360; requirements 279.1, 279.2, 360.5 and 360.7.
"""

from __future__ import annotations

from pathlib import Path

from quorum.batch import BatchHeader, encode_batch, first_headers, record_values, scan_batches
from quorum.core.positions.epoch_history import EpochHistory
from quorum.log.recovery import open_log
from quorum.types import Epoch, EpochStart, OffsetAndEpoch
from simulation.memory_filesystem import MemoryFileSystem
from statemachine.producers import (
    HEADER_OPEN,
    Duplicate,
    SequenceClaim,
    apply_command,
    check_sequence,
    encode_open,
)
from statemachine.records import InitProducerRecord
from statemachine.sections.map_delta import EMPTY_MAP
from statemachine.sections.producer_state import Applied
from statemachine.sections.producers import ProducersDelta, ProducersImage
from statemachine.sections.tracking import ChangeTracker

_DIRECTORY = Path("/log")
_READ_BYTES = 1 << 20


class PartitionLog:
    """The log of one replica. Everything in it survives a restart of its broker.

    ``keeps_producers``: producers are kept after their records were deleted (360.5). Without it, a
    producer is forgotten with its last record, as brokers did before KIP-360.
    """

    def __init__(self, *, keeps_producers: bool = True) -> None:
        self._log, _ = open_log(MemoryFileSystem(), _DIRECTORY)
        self._keeps_producers = keeps_producers
        self.producers_at_start = ProducersImage()
        """Producers at the log start."""
        self.producers = _delta(self.producers_at_start)

    @property
    def start(self) -> OffsetAndEpoch:
        """First offset kept and the epoch of the record before it."""
        return self._log.start

    @property
    def end(self) -> OffsetAndEpoch:
        """Next offset and the epoch of the last record."""
        return self._log.end

    @property
    def epochs(self) -> tuple[EpochStart, ...]:
        """The epoch history, ascending."""
        return self._log.epochs

    def end_offset_for_epoch(self, epoch: Epoch) -> OffsetAndEpoch | None:
        """Return the largest epoch at or below ``epoch`` and its end offset (279.1)."""
        end = self.end.offset
        return EpochHistory(self.start, self.epochs, end).end_offset_for_epoch(epoch, end)

    def digest_at(self, offset: int) -> bytes:
        """Return the log digest below ``offset``; empty if unknown."""
        return self._log.digest_at(offset)

    def read(self, offset: int, end_offset: int, max_bytes: int = _READ_BYTES) -> bytes:
        """Return whole batches of ``[offset, end_offset)``."""
        return self._log.read(offset, max_bytes, end_offset=end_offset)

    def records(self) -> list[tuple[int, Epoch, str]]:
        """Return offset, epoch and value of every record."""
        start, end = self.start.offset, self.end.offset
        data = self.read(start, end, 1 << 30) if start < end else b""
        return [
            (header.base_offset, header.epoch, record_values(data, header)[0].decode())
            for header in scan_batches(data)
        ]

    def append(self, value: str, epoch: Epoch, claim: SequenceClaim | None = None) -> Applied:
        """Append a record as leader of ``epoch``; return its position, or that of its first copy.

        Raises:
            CommandError: The producer's epoch or sequence is refused (360.7).
        """
        offset = self.end.offset
        if claim is None:
            data = encode_batch([value.encode()], base_offset=offset, epoch=epoch, timestamp=offset)
        else:
            if claim.sequence == 0 and claim.oldest_open == 0:
                _learn(self.producers, claim.producer_id, claim.producer_epoch)
            outcome = check_sequence(self, claim)
            if isinstance(outcome, Duplicate):
                return outcome.first
            data = encode_batch(
                [value.encode()],
                base_offset=offset,
                epoch=epoch,
                timestamp=offset,
                producer_id=claim.producer_id,
                producer_epoch=claim.producer_epoch,
                base_sequence=claim.sequence,
                headers=((HEADER_OPEN, encode_open(claim.oldest_open)),),
            )
        self.copy(data)
        return Applied(-1 if claim is None else claim.sequence, self.end.offset, epoch)

    def copy(self, data: bytes) -> None:
        """Append whole batches, as their leader has them."""
        for header in scan_batches(data):
            self._log.append(
                data[header.position : header.position + header.size],
                base_offset=header.base_offset,
                end_offset=header.end_offset,
            )
            _apply(self.producers, data, header)
        self._log.flush()

    def truncate_to(self, end_offset: int) -> None:
        """Cut the log, and forget what the lost records said of producers."""
        if end_offset < self.end.offset:
            self._log.truncate_to(end_offset)
            self._log.flush()
            self._replay_producers()

    def delete_records(self, before: OffsetAndEpoch) -> None:
        """Delete the records below ``before``, as DeleteRecords or retention does."""
        if self._keeps_producers:
            self.producers_at_start = _replayed(
                self.producers_at_start, self._data(before.offset)
            ).settle()
        self._log.advance_start(before)
        self._replay_producers()

    def begun_at(self, start: OffsetAndEpoch, producers: ProducersImage) -> PartitionLog:
        """Return an empty log that begins at the leader's log start, with the producers there."""
        made = PartitionLog(keeps_producers=self._keeps_producers)
        made._log.replace_with(start)
        made.producers_at_start = producers
        made.producers = _delta(producers)
        return made

    def _data(self, end_offset: int) -> bytes:
        start = self.start.offset
        return self.read(start, end_offset, 1 << 30) if start < end_offset else b""

    def _replay_producers(self) -> None:
        self.producers = _replayed(self.producers_at_start, self._data(self.end.offset))


def _delta(image: ProducersImage) -> ProducersDelta:
    return ProducersDelta(image, ChangeTracker(EMPTY_MAP))


def _replayed(image: ProducersImage, data: bytes) -> ProducersDelta:
    producers = _delta(image)
    for header in scan_batches(data):
        _apply(producers, data, header)
    return producers


def _learn(producers: ProducersDelta, producer_id: int, epoch: int) -> None:
    """Record a producer's first batch of an epoch: a partition learns of producers by batches."""
    known = producers.states.get(producer_id)
    if known is None:
        # Ids come from the controller; a partition sees them in any order.
        producers.next_id = producer_id
    if known is None or epoch > known.epoch:
        producers.replay_init(InitProducerRecord(producer_id, epoch), 0, b"")


def _apply(producers: ProducersDelta, data: bytes, header: BatchHeader) -> None:
    if header.producer_id < 0:
        return
    _learn(producers, header.producer_id, header.producer_epoch)
    apply_command(producers, header, first_headers(data, header))
