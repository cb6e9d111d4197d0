"""Holding the epochs of a foreign log against what else names them.

A batch's epoch lies outside its checksum. Between batches it is proven by never falling, so one
that rotted in the last batch, or between two changes of leader, joins its neighbours. Where no
log digest is stored for the end of the log, as in Kafka's directories, there are three witnesses:
the leader change, under a checksum, that opens every epoch and nothing else;
``leader-epoch-checkpoint``; and the epoch of ``quorum-state``, which is on disk before a batch of
that epoch is.

What disagrees is told and not decided: records are under checksums and stay readable, and only the
first witness is protected itself.

See: KIP-101, KIP-595, docs/reference/formats.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from quorum.batch import iterate_records, read_header
from quorum.control import decode_control
from quorum.control_records import LeaderChange
from quorum.errors import CorruptBatchError, ElectionStateError
from quorum.log.election_store import ElectionFile
from quorum.log.epoch_file import EpochFile
from quorum.log.layout import EPOCH_FILE_NAME, QUORUM_STATE_NAME
from quorum.log.segment import Segment
from quorum.ports import FileSystem
from quorum.types import Epoch


class _Place(NamedTuple):
    path: Path
    position: int
    offset: int

    def __str__(self) -> str:
        return f"{self.path} at position {self.position} (offset {self.offset})"


class LogFacts(NamedTuple):
    """What the batches of a log say."""

    segments: Sequence[Segment]
    epochs: Mapping[int, Epoch]
    """By base offset, the epoch of every batch that is not of the epoch of the one before it, the
    first batch included; ascending."""
    controls: Mapping[int, int]
    """Position in its segment of every control batch, by base offset."""

    @property
    def start_offset(self) -> int:
        """Where the first segment begins."""
        return self.segments[0].base_offset

    def place(self, offset: int) -> _Place:
        """The batch that contains ``offset``; the end of the log if none does."""
        for segment in reversed(self.segments):
            if segment.base_offset <= offset:
                try:
                    found = segment.locate(offset, segment.tail)
                except CorruptBatchError:
                    # Cut since it was scanned: its end stands for the place.
                    found = None
                position = segment.tail.position if found is None else found[0]
                return _Place(segment.path, position, offset)
        return _Place(self.segments[0].path, 0, offset)


def epoch_problems(fs: FileSystem, directory: Path, facts: LogFacts) -> Iterator[str]:
    """One sentence for each place where a witness contradicts the batches, with file and position.

    Read the log before. Where it is written to meanwhile, the files beside it are then the newer
    ones: ``quorum-state`` is never behind the epochs that were read, and what
    ``leader-epoch-checkpoint`` says is looked at only inside of the log that was read, up to its
    last entry there, so it does not matter which of the two is written first.

    Raises:
        StorageError: A file could not be read.
    """
    yield from _against_leader_changes(fs, directory, facts)
    yield from _against_epoch_file(fs, directory, facts)
    yield from _against_election(fs, directory, facts)


def _against_leader_changes(fs: FileSystem, directory: Path, facts: LogFacts) -> Iterator[str]:
    opens = {offset: _is_leader_change(facts, offset) for offset in facts.controls}
    if not any(opens.values()) and not ElectionFile(fs, directory).exists():
        # Not a quorum's log but, as far as can be seen, a topic's: no leader writes itself in.
        return
    for offset, epoch in facts.epochs.items():
        # A log that was trimmed may begin anywhere in an epoch.
        if opens.get(offset, False) is False and (offset > facts.start_offset or offset == 0):
            yield (
                f"{facts.place(offset)}: epoch {epoch} begins here, and with no leader change; the "
                "epoch of this batch or of the last leader change before it is wrong"
            )
    for offset in sorted({each for each, is_one in opens.items() if is_one} - facts.epochs.keys()):
        if offset > facts.start_offset or offset == 0:
            yield (
                f"{facts.place(offset)}: a leader change begins no epoch here; "
                "the epoch of this batch is wrong"
            )


def _is_leader_change(facts: LogFacts, offset: int) -> bool | None:
    """None where that cannot be told: the batch is not there any more, or no control batch."""
    segment = next(each for each in reversed(facts.segments) if each.base_offset <= offset)
    try:
        data = segment.read(offset, 1, segment.tail.end_offset)
        first = iterate_records(data, read_header(data), path=segment.path)[0]
        control = decode_control(first, path=segment.path, position=facts.controls[offset])
    except CorruptBatchError:
        return None
    return isinstance(control, LeaderChange)


def _against_epoch_file(fs: FileSystem, directory: Path, facts: LogFacts) -> Iterator[str]:
    """Entries may end before the log does and go on behind its end: a crash leaves both."""
    file = EpochFile(fs, directory)
    if not fs.exists(file.path):
        return
    stored = file.load()
    if stored is None:
        yield f"{file.path}: malformed, so it cannot witness the epochs of the batches"
        return
    end_offset = facts.segments[-1].tail.end_offset
    entries = {
        entry.start_offset: entry.epoch
        for entry in stored
        if facts.start_offset <= entry.start_offset < end_offset
    }
    found = facts.epochs
    first, last = min(entries, default=end_offset), max(entries, default=-1)
    for offset in sorted({*entries, *(each for each in found if first <= each <= last)}):
        # The first entry moves up with a log start, which Kafka does not store.
        is_moved = offset == first and _epoch_at(facts, offset) == entries.get(offset)
        if entries.get(offset) != found.get(offset) and not is_moved:
            said = f"epoch {entries[offset]} begins" if offset in entries else "no epoch begins"
            yield (
                f"{facts.place(offset)}: the batch is of epoch {_epoch_at(facts, offset)}, and "
                f"{EPOCH_FILE_NAME} says that {said} here"
            )


def _epoch_at(facts: LogFacts, offset: int) -> Epoch:
    return [0, *(epoch for begin, epoch in facts.epochs.items() if begin <= offset)][-1]


def _against_election(fs: FileSystem, directory: Path, facts: LogFacts) -> Iterator[str]:
    file = ElectionFile(fs, directory)
    try:
        state = file.load_foreign() if file.exists() else None
    except ElectionStateError:
        return
    if state is None:
        return
    for offset, epoch in facts.epochs.items():
        if epoch > state.epoch:
            yield (
                f"{facts.place(offset)}: the batch is of epoch {epoch}, "
                f"and {QUORUM_STATE_NAME} knows none after {state.epoch}"
            )
