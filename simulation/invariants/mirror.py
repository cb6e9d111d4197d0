"""The content of one log as an onlooker remembers it: every batch boundary and what leads there.

A *chain* is one number that stands for everything below a boundary. Two logs with the same chain
at an offset are the same up to there.
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
    """Stands for all its bytes."""
    data: bytes
    """The bytes themselves."""
    is_forged: bool
    """Whether they are disguised: whoever holds them holds a history that nobody wrote."""


class Truncation(NamedTuple):
    """A cut: where the log ends now, and the boundaries that are gone with their chains."""

    end_offset: int
    old_end: int
    removed: list[tuple[int, int]]


class Splitting:
    """What the batches of one run's payloads are, and which of them a script has forged.

    Nothing of it outlives the run: what was forged in one is no forgery in the next.
    """

    __slots__ = ("_cache", "_disguised")

    def __init__(self) -> None:
        self._cache: dict[bytes, list[Batch]] = {}
        self._disguised: dict[int, int] = {}

    def disguise(self, forged: bytes, original: bytes) -> None:
        """Let a batch that a script has forged pass for the one it replaced.

        The invariants speak of what intact disks hold; what becomes of a forged batch, the script
        shows itself.
        """
        self._disguised[hash(forged)] = hash(original)
        self._cache.clear()

    def split(self, payload: bytes) -> list[Batch]:
        """The batches of ``payload``, which are whole and contiguous."""
        found = self._cache.get(payload)
        if found is None:
            found = _split(payload, self._disguised)
            if len(self._cache) > _CACHED_MAX:
                self._cache.clear()
            self._cache[payload] = found
        return found

    def batches_of(self, log: LogStore, start_offset: int) -> Iterator[Batch]:
        """The batches of a log on a disk, from the boundary ``start_offset`` to its end."""
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
    """One log. What lies below its start is kept as long as this life remembers it."""

    __slots__ = ("chains", "ends", "epochs")

    def __init__(self, start_offset: int = 0, epoch: int = 0, chain: int = 0) -> None:
        self.ends = [start_offset]
        self.epochs = [epoch]
        self.chains = [chain]

    @property
    def end_offset(self) -> int:
        """Where it ends (exclusive)."""
        return self.ends[-1]

    @property
    def chain(self) -> int:
        """What it contains."""
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
        """The chain at a boundary; None when this log has no boundary there."""
        ends = self.ends
        if offset == ends[-1]:
            return self.chains[-1]
        at = bisect_left(ends, offset)
        return self.chains[at] if at < len(ends) and ends[at] == offset else None

    def has_boundary(self, offset: int, epoch: int) -> bool:
        """Whether a batch of ``epoch`` ends at ``offset``, or the log starts there."""
        ends = self.ends
        if offset == ends[-1]:
            return self.epochs[-1] == epoch
        at = bisect_left(ends, offset)
        return at < len(ends) and ends[at] == offset and self.epochs[at] == epoch

    def boundaries_between(self, begin: int, end: int) -> list[tuple[int, int]]:
        """Boundaries above ``begin`` up to ``end``, each with the epoch of the batch below."""
        first, last = bisect_left(self.ends, begin + 1), bisect_left(self.ends, end + 1)
        return list(zip(self.ends[first:last], self.epochs[first:last]))

    def copy(self) -> LogMirror:
        """An independent copy."""
        other = LogMirror()
        other.ends, other.epochs, other.chains = self.ends[:], self.epochs[:], self.chains[:]
        return other
