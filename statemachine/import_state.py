"""Progress of the import of another cluster's metadata; part of an image's provenance.

``statemachine.imports`` replays it.
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
    """A position in an import source. The source's checkpoint, if any, sorts before its log.

    ``offset`` is a record number inside the checkpoint file, or an offset in the log.
    """

    is_in_log: bool
    offset: int

    def text(self) -> str:
        """Return the position as text: ``checkpoint:12`` or ``4871``."""
        return f"{'' if self.is_in_log else _CHECKPOINT_PREFIX}{self.offset}"


@dataclass(frozen=True, slots=True)
class ImportState:
    """Progress of the import of one source."""

    cluster_id: str
    """Cluster id of the source; any text."""
    checkpoint_offset: int
    """End offset of the source's checkpoint that it started from, ``NO_CHECKPOINT`` for none."""
    position: SourcePosition
    """Position of the next source record."""
    is_finished: bool = False
    broker_epoch_max: int = -1
    """Once finished, the highest imported broker epoch."""

    def has_brought(self, broker_epoch: int) -> bool:
        """Whether a registration of that epoch came with the import.

        Epochs only rise, so this cluster assigns higher ones afterwards.
        """
        return not self.is_finished or broker_epoch <= self.broker_epoch_max


def position_of(text: str) -> SourcePosition:
    """Parse a position; the reverse of ``SourcePosition.text``.

    Raises:
        ValueError: The text is not a position.
    """
    digits = text.removeprefix(_CHECKPOINT_PREFIX)
    if not digits.isascii() or not digits.isdecimal() or len(digits) > _OFFSET_DIGITS_MAX:
        raise ValueError(f"{text[:40]!r} is no position in a source")
    return SourcePosition(len(digits) == len(text), int(digits))
