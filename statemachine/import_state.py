"""How far the import of another cluster's metadata has come; part of an image's provenance.

What replay does with it is ``statemachine.imports``' work.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from statemachine.records import ImportStateRecord
from statemachine.sections.tracking import RecordKey

NO_CHECKPOINT = -1
IMPORT_KEY: RecordKey = (ImportStateRecord.API_KEY,)
_CHECKPOINT_PREFIX = "checkpoint:"
_OFFSET_DIGITS_MAX = 19


class SourcePosition(NamedTuple):
    """A place in a source. Ordered: the source's checkpoint, if any, comes before its log.

    ``offset`` counts the records of the checkpoint file while in it, and is a log offset then.
    """

    is_in_log: bool
    offset: int

    def text(self) -> str:
        """``checkpoint:12`` or ``4871``."""
        return f"{'' if self.is_in_log else _CHECKPOINT_PREFIX}{self.offset}"


@dataclass(frozen=True, slots=True)
class ImportState:
    """How far the import of one source has come."""

    cluster_id: str
    """Of the source; any text."""
    checkpoint_offset: int
    """End offset of the source's checkpoint that it started from, ``NO_CHECKPOINT`` for none."""
    position: SourcePosition
    """Where the next source record is."""
    is_finished: bool = False
    broker_epoch_max: int = -1
    """Once finished, the highest broker epoch that came with it."""

    def has_brought(self, broker_epoch: int) -> bool:
        """Whether a registration of that epoch came with the import.

        Epochs rise for ever, so those given here afterwards are higher.
        """
        return not self.is_finished or broker_epoch <= self.broker_epoch_max


def position_of(text: str) -> SourcePosition:
    """The reverse of ``SourcePosition.text``.

    Raises:
        ValueError: The text is nothing of that kind.
    """
    digits = text.removeprefix(_CHECKPOINT_PREFIX)
    if not digits.isascii() or not digits.isdecimal() or len(digits) > _OFFSET_DIGITS_MAX:
        raise ValueError(f"{text[:40]!r} is no position in a source")
    return SourcePosition(len(digits) == len(text), int(digits))
