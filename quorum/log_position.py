"""``LogPosition``: how far somebody has read the log, and what proves that it is still this log.

Consumers, watches, exports and the Spark stream store the same value. Its lineage (the epochs that
were read, with their start offsets) locates the point where two histories part. The log digest
proves that point, because it covers every byte below it.

One lookup is not enough to locate the point: the epoch that the leader answers may reach further in
its log than it did in what the reader has. So the reader goes back through its own epochs, one
question for each epoch that the leader does not know, until both name the same one. Up to the end
that they share of it, both histories are equal, as an epoch has one leader, who only appends.

This module needs nothing but the standard library, so that clients and Spark executors can use it.

See: KIP-279 (279.2), KIP-320, ADR 5 (digest), ADR 65 (incarnation), requirements 320.3 to 320.9.
"""

from __future__ import annotations

import json
from bisect import bisect_left, bisect_right
from collections.abc import Generator, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

LINEAGE_EPOCHS_MAX = 1024
"""Most epochs in a lineage. Behind the oldest of them the point of divergence is a bound."""


FIRST_INCARNATION_ID = bytes(16)
"""Id of the log that was formatted; nodes send none for it."""


class EpochEntry(NamedTuple):
    """An epoch that was read: it begins at ``start_offset``."""

    epoch: int
    start_offset: int
    log_digest: bytes = b""
    """Digest of everything below ``start_offset``; empty if not known."""


@dataclass(frozen=True, slots=True)
class LogPosition:
    """The next offset to read, and what was read before it.

    Store it to resume later. Two positions are equal if their offsets and epochs are.
    """

    offset: int
    """Everything below was read."""
    epoch: int = -1
    """Leader epoch of the record before ``offset``; -1 if not known, and then not verified."""
    epochs: tuple[EpochEntry, ...] = field(default=(), compare=False)
    """The newest epochs below ``offset``, ascending; at most ``LINEAGE_EPOCHS_MAX``.

    Without them, the offset of a truncation is only a bound where whole epochs are gone."""
    log_digest: bytes = field(default=b"", compare=False)
    """Digest of everything below ``offset``; empty if not known."""
    log_incarnation: bytes = field(default=b"", compare=False)
    """Id of the incarnation of the log that was read, 16 bytes; empty if not known."""
    newest_incarnation: int = field(default=0, compare=False)
    """Number of the newest incarnation that the reader has met; it reads nothing older."""

    def to_dict(self) -> dict[str, Any]:
        """Return the position as values that JSON has; the reverse of ``from_dict``."""
        newest = {"newest": self.newest_incarnation} if self.newest_incarnation else {}
        return {
            "offset": self.offset,
            "epoch": self.epoch,
            "epochs": [
                [e.epoch, e.start_offset, *([e.log_digest.hex()] if e.log_digest else [])]
                for e in self.epochs
            ],
            "digest": self.log_digest.hex(),
            "incarnation": self.log_incarnation.hex(),
            **newest,
        }

    @classmethod
    def from_dict(cls, found: dict[str, Any]) -> LogPosition:
        """Return the position that ``to_dict`` described; fields but ``offset`` may be missing.

        Raises:
            ValueError: It is no such description.
        """
        try:
            epochs = tuple(
                EpochEntry(int(entry[0]), int(entry[1]), bytes.fromhex("".join(entry[2:3])))
                for entry in found.get("epochs", ())
            )
            return cls(
                int(found["offset"]),
                int(found.get("epoch", -1)),
                epochs,
                bytes.fromhex(found.get("digest", "")),
                bytes.fromhex(found.get("incarnation", "")),
                int(found.get("newest", 0)),
            )
        except (KeyError, IndexError, TypeError, AttributeError) as error:
            raise ValueError(f"not a log position: {found!r}") from error

    def to_json(self) -> str:
        """Return the position as one line of JSON, to store it; the reverse of ``from_json``."""
        return json.dumps(self.to_dict(), separators=(",", ":"))

    @classmethod
    def from_json(cls, text: str) -> LogPosition:
        """Return the position that ``to_json`` wrote.

        Raises:
            ValueError: The text is not one.
        """
        found = json.loads(text)
        if not isinstance(found, dict):
            raise ValueError(f"not a log position: {text!r}")
        return cls.from_dict(found)


class Divergence(NamedTuple):
    """The point where the records read begin to differ from the log.

    ``offset`` is the first one that differs and ``epoch`` that of the record before it, which
    both have; -1 where that is not known. If not ``is_exact``, the first difference is at
    ``offset`` or before it: the reader does not know its own epochs far enough back, the log begins
    above it, or the digests contradict the epochs.
    """

    offset: int
    epoch: int
    is_exact: bool

    def __str__(self) -> str:
        """The place, as the end of a sentence."""
        bound = "from offset" if self.is_exact else "at the latest from offset"
        behind = f" (behind epoch {self.epoch})" if self.epoch >= 0 else ""
        return f"{bound} {self.offset} on{behind}"


class Lineage:
    """Where each epoch that was read began. Epochs and offsets rise strictly."""

    def __init__(self, epochs: Iterable[Sequence[Any]] = ()) -> None:
        """Begin with entries of epoch, start offset and, where known, digest."""
        self._entries: list[EpochEntry] = []
        for entry in epochs:
            self.add(*entry)

    @property
    def epochs(self) -> tuple[EpochEntry, ...]:
        """The entries, ascending."""
        return tuple(self._entries)

    def add(self, epoch: int, start_offset: int, log_digest: bytes = b"") -> None:
        """Remember that ``epoch`` begins at ``start_offset``, if it is newer than all others.

        A negative offset is ignored: no record is before offset 0.
        """
        if start_offset < 0:
            return
        newest = self._entries[-1] if self._entries else None
        if newest and (epoch <= newest.epoch or start_offset <= newest.start_offset):
            return
        self._entries.append(EpochEntry(epoch, start_offset, log_digest))
        del self._entries[:-LINEAGE_EPOCHS_MAX]

    def truncate_to(self, end_offset: int) -> None:
        """Forget the epochs that begin at or above ``end_offset``."""
        del self._entries[bisect_left(self._entries, end_offset, key=_start_of) :]

    def epoch_at(self, offset: int) -> int:
        """Return the epoch of the record that was read at ``offset``; -1 if not known."""
        below = bisect_right(self._entries, offset, key=_start_of)
        return self._entries[below - 1].epoch if below else -1

    def end_of(self, epoch: int, end_offset: int) -> tuple[int, int] | None:
        """Return the largest epoch at or below ``epoch`` and where it ends, in what was read below
        ``end_offset``; None if no epoch is low enough.
        """
        entries = self._entries
        above = bisect_right(entries, epoch, key=lambda entry: entry.epoch)
        if above == 0:
            return None
        end = entries[above].start_offset if above < len(entries) else end_offset
        return entries[above - 1].epoch, min(end, end_offset)

    def walk(
        self, position: int, epoch: int, end_offset: int
    ) -> Generator[int, tuple[int, int], Divergence]:
        """Find where the records read below ``position`` begin to differ from the log.

        ``epoch`` and ``end_offset`` are the log's answer for the newest epoch read: its largest
        epoch at or below that one, and where it ends; -1 and the log start if all that the log has
        is newer. Yields each further epoch to ask about, at most one for each epoch that was read,
        and expects such an answer.
        """
        while True:
            if epoch < 0:
                return Divergence(min(end_offset, position), -1, is_exact=end_offset == 0)
            own = self.end_of(epoch, position)
            if own is None:
                # The log has none of the remembered epochs: they differ from the first one on.
                first = min(self._entries[0].start_offset if self._entries else position, position)
                is_whole = end_offset <= first
                offset = min(end_offset, first)
                is_known = is_whole and offset > 0
                return Divergence(offset, epoch if is_known else -1, is_exact=offset == 0)
            own_epoch, own_end = own
            if own_epoch == epoch:
                offset = min(end_offset, own_end)
                # No record is before offset 0, whatever epoch the answer names.
                return Divergence(offset, epoch if offset > 0 else -1, is_exact=True)
            epoch, end_offset = yield own_epoch
            position = own_end

    def check_digests(
        self, found: Divergence
    ) -> Generator[tuple[int, bytes], bool | None, Divergence]:
        """Confirm a divergence by the digests that were kept at the starts of epochs.

        Yields offsets with the digest of what was read below them, and expects whether the log has
        the same one there; None if it cannot say. Returns ``found`` itself, unless the log differs
        below it: then the lowest offset known to differ, which is only a bound.
        """
        marks = [e for e in self._entries if e.log_digest and 0 < e.start_offset <= found.offset]
        low, high = 0, len(marks)
        while low < high:
            # The newest mark first: where the epochs are right, it ends the search.
            middle = high - 1 if high == len(marks) else (low + high) // 2
            is_equal = yield marks[middle].start_offset, marks[middle].log_digest
            if is_equal is None:
                return found
            low, high = (middle + 1, high) if is_equal else (low, middle)
        if high == len(marks):
            return found
        return Divergence(marks[high].start_offset, -1, is_exact=False)


def _start_of(entry: EpochEntry) -> int:
    return entry.start_offset
