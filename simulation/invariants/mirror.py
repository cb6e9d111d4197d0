"""The content of one log, as the run observer records it: batch boundaries with hash chains.

A *chain* is one number that identifies everything below a boundary. Two logs with the same chain at
an offset are equal below it.
"""

from __future__ import annotations

import struct
from bisect import bisect_left
from collections.abc import Iterator
from typing import NamedTuple

from quorum.ports import LogStore

_HEAD = struct.Struct(">qiIbIhiqqqhii")
_LENGTH_OVERHEAD = 12
_CONTROL_BIT = 32
_CACHED_MAX = 4096
_READ_BYTES = 1 << 20


class Batch(NamedTuple):
    """One batch of a log."""

    base_offset: int
    end_offset: int
    epoch: int
    is_control: bool
    producer_id: int
    producer_epoch: int
    sequence: int
    content: int
    """Hash of its bytes."""
    data: bytes
    """Its bytes."""
    is_forged: bool
    """Whether a script forged the batch: a log that holds it has a forged history."""


class Truncation(NamedTuple):
    """A cut: the new end of the log, and the removed boundaries with their chains."""

    end_offset: int
    old_end: int
    removed: list[tuple[int, int]]


class Splitting:
    """Splits the payloads of one run into batches, and knows which of them a script has forged.

    It belongs to one run, so a forgery in one run does not affect the next.
    """

    __slots__ = ("_cache", "_disguised")

    def __init__(self) -> None:
        self._cache: dict[bytes, list[Batch]] = {}
        self._disguised: dict[int, int] = {}

    def disguise(self, forged: bytes, original: bytes) -> None:
        """Treat a batch that a script has forged as the batch it replaced.

        The invariants are about the content of intact disks; the script itself shows what happens
        to a forged batch.
        """
        self._disguised[hash(forged)] = hash(original)
        self._cache.clear()

    def split(self, payload: bytes) -> list[Batch]:
        """Return the batches of ``payload``, which must be whole and contiguous."""
        found = self._cache.get(payload)
        if found is None:
            found = _split(payload, self._disguised)
            if len(self._cache) > _CACHED_MAX:
                self._cache.clear()
            self._cache[payload] = found
        return found

    def batches_of(self, log: LogStore, start_offset: int) -> Iterator[Batch]:
        """Yield the batches of a log on disk, from the boundary ``start_offset`` to its end."""
        offset = start_offset
        while offset < log.end.offset:
            for batch in self.split(log.read(offset, _READ_BYTES)):
                yield batch
                offset = batch.end_offset


def _split(payload: bytes, disguised: dict[int, int]) -> list[Batch]:
    batches = []
    position = 0
    while position < len(payload):
        (
            base,
            length,
            epoch,
            _,
            _,
            attributes,
            last_delta,
            _,
            _,
            producer,
            producer_epoch,
            sequence,
            _,
        ) = _HEAD.unpack_from(payload, position)
        after = position + _LENGTH_OVERHEAD + length
        data = payload[position:after]
        own = hash(data)
        content = disguised.get(own, own)
        batches.append(
            Batch(
                base,
                base + last_delta + 1,
                epoch,
                bool(attributes & _CONTROL_BIT),
                producer,
                producer_epoch,
                sequence,
                content,
                data,
                content != own,
            )
        )
        position = after
    return batches


class LogMirror:
    """One log. Boundaries below its start are kept for the lifetime of this object."""

    __slots__ = ("chains", "ends", "epochs")

    def __init__(self, start_offset: int = 0, epoch: int = 0, chain: int = 0) -> None:
        self.ends = [start_offset]
        self.epochs = [epoch]
        self.chains = [chain]

    @property
    def end_offset(self) -> int:
        """Return the end offset (exclusive)."""
        return self.ends[-1]

    @property
    def chain(self) -> int:
        """Return the chain at the end."""
        return self.chains[-1]

    def append(self, batch: Batch) -> None:
        """Add a batch at the end."""
        self.chains.append(hash((self.chains[-1], batch.content)))
        self.ends.append(batch.end_offset)
        self.epochs.append(batch.epoch)

    def cut(self, end_offset: int) -> Truncation:
        """Remove everything at and above ``end_offset``."""
        old_end = self.ends[-1]
        at = bisect_left(self.ends, end_offset) + 1
        removed = list(zip(self.ends[at:], self.chains[at:]))
        del self.ends[at:], self.epochs[at:], self.chains[at:]
        return Truncation(end_offset, old_end, removed)

    def chain_at(self, offset: int) -> int | None:
        """Return the chain at a boundary; None when this log has no boundary there."""
        ends = self.ends
        if offset == ends[-1]:
            return self.chains[-1]
        at = bisect_left(ends, offset)
        return self.chains[at] if at < len(ends) and ends[at] == offset else None

    def has_boundary(self, offset: int, epoch: int) -> bool:
        """Return whether a batch of ``epoch`` ends at ``offset``, or the log starts there."""
        ends = self.ends
        if offset == ends[-1]:
            return self.epochs[-1] == epoch
        at = bisect_left(ends, offset)
        return at < len(ends) and ends[at] == offset and self.epochs[at] == epoch

    def boundaries_between(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Return the boundaries in (begin, end], each with the epoch of the batch below it."""
        first, last = bisect_left(self.ends, begin + 1), bisect_left(self.ends, end + 1)
        return list(zip(self.ends[first:last], self.epochs[first:last]))

    def copy(self) -> LogMirror:
        """Return an independent copy."""
        other = LogMirror()
        other.ends, other.epochs, other.chains = self.ends[:], self.epochs[:], self.chains[:]
        return other
