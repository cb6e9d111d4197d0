"""Descriptions of received records for the core, which never reads their bytes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from quorum.incarnation import FIRST_INCARNATION, LogIncarnation
from quorum.types import EpochStart, ReplicaKey, Voter
from quorum.values import value

if TYPE_CHECKING:
    from quorum.batch import BatchHeader


@value
class VotersAt:
    """A voters control record found in received records, with its offset."""

    offset: int
    voters: tuple[Voter, ...]
    removed: tuple[ReplicaKey, ...] = ()
    """The tombstones in the record."""
    incarnation: LogIncarnation = FIRST_INCARNATION


@value
class ReceivedRecords:
    """Whole, checksum-verified batches of a Fetch answer, described for the core.

    Created by the receiving runtime; the core never reads ``payload`` and ``headers``.

    Invariants:
        1. ``base_offset < end_offset``; the batches are contiguous.
        2. ``epochs`` holds every epoch that starts inside, ascending; the first entry's
           ``start_offset`` equals ``base_offset``.
    """

    base_offset: int
    end_offset: int
    epochs: tuple[EpochStart, ...]
    voters: tuple[VotersAt, ...]
    payload: bytes
    headers: Sequence[BatchHeader] = ()
    """The batch headers in ``payload``, for the log: it need not read and verify them again."""
