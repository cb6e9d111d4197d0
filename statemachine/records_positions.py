"""Committed positions of consumers of this log, in the key range of our own record types.

Field lists only ever grow at the end.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from statemachine.records_schema import Int32, Int64, MetadataRecord, WireStruct


@dataclass(frozen=True, slots=True)
class PositionEpoch(WireStruct):
    """An epoch that a consumer has read: its start, and the log digest below that, if known."""

    epoch: Int32 = 0
    start_offset: Int64 = 0
    log_digest: bytes = b""


@dataclass(slots=True)
class CommittedPositionRecord(MetadataRecord):
    """The position that a group has committed; replaces the previous one (320.6).

    The fields of the position are those of ``quorum.log_position.LogPosition``. ``metadata`` is
    the consumer's own text.
    """

    API_KEY: ClassVar[int] = 20011
    IDENTITY = ("group",)
    HISTORY = ("entity", "group")
    group: str = ""
    offset: Int64 = 0
    leader_epoch: Int32 = -1
    epochs: tuple[PositionEpoch, ...] = ()
    log_digest: bytes = b""
    log_incarnation: bytes = b""
    metadata: str = ""
    commit_timestamp_ms: Int64 = -1


@dataclass(slots=True)
class RemoveCommittedPositionRecord(MetadataRecord):
    """Forgets the position of a group, which must exist."""

    API_KEY: ClassVar[int] = 20012
    HISTORY = ("entity", "group")
    group: str = ""
