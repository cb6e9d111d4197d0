"""Metadata transactions: what replay remembers of an open one, and the three markers.

Several batches become visible at once, or not at all. Not to be confused with the transactional
ids of producers.

See: KIP-868; metadata-records.md section 10.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from quorum.errors import ReplayError
from statemachine.sections.tracking import RecordKey

if TYPE_CHECKING:
    from statemachine.delta import ImageDelta
    from statemachine.image import MetadataImage


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The state before an open transaction: what an abort returns to."""

    name: str | None
    before: MetadataImage
    touched: frozenset[RecordKey]


def begin(delta: ImageDelta, name: str | None) -> None:
    """Open a transaction.

    Raises:
        ReplayError: One is open already.
    """
    if delta.transaction is not None:
        raise ReplayError(f"begin inside the open transaction {delta.transaction.name!r}")
    delta.transaction = OpenTransaction(name, delta.view(), delta.changed_keys)


def end(delta: ImageDelta) -> None:
    """Commit the open transaction.

    Raises:
        ReplayError: None is open.
    """
    if delta.transaction is None:
        raise ReplayError("end of a transaction that was never begun")
    delta.transaction = None


def abort(delta: ImageDelta) -> None:
    """Discard the open transaction and everything replayed since its begin.

    Raises:
        ReplayError: None is open.
    """
    transaction = delta.transaction
    if transaction is None:
        raise ReplayError("abort of a transaction that was never begun")
    delta.take_content(transaction.before)
    delta.tracker.revert(transaction.touched, transaction.before.extras)
    delta.transaction = None
