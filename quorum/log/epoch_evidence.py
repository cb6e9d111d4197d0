"""Compare the epochs of a log with other evidence of them.

A batch's epoch is outside its checksum. Within the log, epochs only have to be non-decreasing. So a
corrupt epoch of the last batch, or one between two leader changes, can look valid. If no log digest
is stored for the end of the log, as in Kafka's directories, there are three other sources:

- the leader change, under a checksum, which opens every epoch and nothing else;
- ``leader-epoch-checkpoint``;
- the epoch of ``quorum-state``, which is on disk before a batch of that epoch.

A reader of the directory reports a mismatch and resolves none: records are under checksums and stay
readable. A node that opens its own log compares, where no stored digest proves its epochs, the
leader changes and its epoch file, and quarantines what they contradict.

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
from quorum.types import Epoch, EpochStart


class _Place(NamedTuple):
    path: Path
    position: int
    offset: int

    def __str__(self) -> str:
        return f"{self.path} at position {self.position} (offset {self.offset})"


class EpochContradiction(NamedTuple):
    """A batch whose epoch does not fit the leader changes."""

    offset: int
    first_suspect: int
    """Offset of the first batch whose epoch may be the wrong one; not above ``offset``."""
    cause: str


class LogFacts(NamedTuple):
    """Epochs and control batches found in a log."""

    segments: Sequence[Segment]
    epochs: Mapping[int, Epoch]
    """Epoch by base offset, for the first batch and for every batch whose epoch differs from that
    of the batch before it; ascending."""
    controls: Mapping[int, int]
    """Position in its segment of every control batch, by base offset."""

    @property
    def start_offset(self) -> int:
        """Base offset of the first segment."""
        return self.segments[0].base_offset

    def place(self, offset: int) -> _Place:
        """Return the batch that contains ``offset``; the end of the log if none does."""
        for segment in reversed(self.segments):
            if segment.base_offset <= offset:
                try:
                    found = segment.locate(offset, segment.tail)
                except CorruptBatchError:
                    # Cut since the scan: report the end of the segment.
                    found = None
                position = segment.tail.position if found is None else found[0]
                return _Place(segment.path, position, offset)
        return _Place(self.segments[0].path, 0, offset)


def epoch_problems(fs: FileSystem, directory: Path, facts: LogFacts) -> Iterator[str]:
    """Yield one sentence for each contradiction to the batches, with file and position.

    Read the log before the call. If a node writes to it meanwhile, the side files are newer than
    the log: ``quorum-state`` is never behind the epochs read. ``leader-epoch-checkpoint`` is
    compared only inside the log as read, up to its last entry there, so the write order of the
    two files does not matter.

    Raises:
        StorageError: A file could not be read.
    """
    yield from _against_leader_changes(fs, directory, facts)
    yield from _against_epoch_file(fs, directory, facts)
    yield from _against_election(fs, directory, facts)


def leader_changes(facts: LogFacts) -> dict[int, bool | None]:
    """Read every control batch: whether it is a leader change, by base offset; None if unknown."""
    return {offset: _is_leader_change(facts, offset) for offset in facts.controls}


def leader_change_contradictions(
    facts: LogFacts, opens: Mapping[int, bool | None]
) -> Iterator[EpochContradiction]:
    """Yield epochs that begin without a leader change, then leader changes that begin no epoch.

    Only for the log of a quorum; ``opens`` is that of ``leader_changes``. A log without a batch
    contradicts nothing, nor does the first batch of a trimmed one, which may lie anywhere in an
    epoch.
    """
    before = facts.start_offset
    for offset, epoch in facts.epochs.items():
        if opens.get(offset, False) is False and (offset > facts.start_offset or offset == 0):
            yield EpochContradiction(
                offset,
                before,
                f"epoch {epoch} begins here without a leader change; the "
                "epoch of this batch or of the last leader change before it is wrong",
            )
        before = offset
    for offset in sorted({each for each, is_one in opens.items() if is_one} - facts.epochs.keys()):
        if offset > facts.start_offset or offset == 0:
            yield EpochContradiction(
                offset,
                offset,
                "a leader change begins no epoch here; the epoch of this batch is wrong",
            )


def _against_leader_changes(fs: FileSystem, directory: Path, facts: LogFacts) -> Iterator[str]:
    opens = leader_changes(facts)
    if not any(opens.values()) and not ElectionFile(fs, directory).exists():
        # Not a quorum's log but apparently a topic's, which has no leader changes.
        return
    for found in leader_change_contradictions(facts, opens):
        yield f"{facts.place(found.offset)}: {found.cause}"


def _is_leader_change(facts: LogFacts, offset: int) -> bool | None:
    """Return None if it cannot be determined: the batch is gone, or is not a control batch."""
    segment = next(each for each in reversed(facts.segments) if each.base_offset <= offset)
    try:
        data = segment.read(offset, 1, segment.tail.end_offset)
        first = iterate_records(data, read_header(data), path=segment.path)[0]
        control = decode_control(first, path=segment.path, position=facts.controls[offset])
    except CorruptBatchError:
        return None
    return isinstance(control, LeaderChange)


def _against_epoch_file(fs: FileSystem, directory: Path, facts: LogFacts) -> Iterator[str]:
    file = EpochFile(fs, directory)
    if not fs.exists(file.path):
        return
    stored = file.load()
    if stored is None:
        yield f"{file.path}: malformed, so it cannot confirm the epochs of the batches"
        return
    for found in epoch_file_contradictions(facts, stored):
        yield f"{facts.place(found.offset)}: {found.cause}"


def epoch_file_contradictions(
    facts: LogFacts, stored: Sequence[EpochStart]
) -> Iterator[EpochContradiction]:
    """Yield the offsets where the epoch file and the batches differ; ``stored`` is its content.

    The file may end before the log or behind it: a crash leaves both.
    """
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
            entry = f"epoch {entries[offset]}" if offset in entries else "no epoch"
            yield EpochContradiction(
                offset,
                offset,
                f"the batch is of epoch {_epoch_at(facts, offset)}, but {EPOCH_FILE_NAME} has "
                f"{entry} beginning here",
            )


def unproven_by_batches(
    facts: LogFacts, stored: Sequence[EpochStart], epoch_max: Epoch
) -> Iterator[EpochContradiction]:
    """Yield the contradictions of ``epoch_file_contradictions`` that show damage of the log.

    The file has no checksum, so it may be the one that is damaged. It surely is if it has an epoch
    above ``epoch_max``, which this replica never reached. Nor can it contradict an epoch of several
    batches: if one of those had another epoch, an epoch would begin without a leader change.
    """
    if any(entry.epoch > epoch_max for entry in stored):
        return
    for found in epoch_file_contradictions(facts, stored):
        if _has_one_batch(facts, found.offset):
            yield found


def _has_one_batch(facts: LogFacts, begin: int) -> bool:
    """Return whether the epoch that begins at ``begin`` has one batch; False if none begins."""
    if begin not in facts.epochs:
        return False
    newest = facts.segments[-1]
    end = min((each for each in facts.epochs if each > begin), default=newest.tail.end_offset)
    segment = next(each for each in reversed(facts.segments) if each.base_offset <= begin)
    first = read_header(segment.read(begin, 1, segment.tail.end_offset))
    return first.end_offset >= end


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
                f"but {QUORUM_STATE_NAME} has no epoch after {state.epoch}"
            )
