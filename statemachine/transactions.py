"""Metadata transactions: the three markers.

Several batches become visible at once, or not at all. Not to be confused with the transactional
ids of producers.

See: KIP-868; docs/reference/record-types.md (Metadata records).
"""

from __future__ import annotations

from quorum.errors import ReplayError
from statemachine.open_image import OpenImage, OpenTransaction


def begin(delta: OpenImage, name: str | None) -> None:
    """Open a transaction.

    Raises:
        ReplayError: One is open already.
    """
    if delta.transaction is not None:
        raise ReplayError(f"begin inside the open transaction {delta.transaction.name!r}")
    delta.transaction = OpenTransaction(name, delta.view(), delta.changed_keys)


def end(delta: OpenImage) -> None:
    """Commit the open transaction.

    Raises:
        ReplayError: None is open.
    """
    if delta.transaction is None:
        raise ReplayError("end of a transaction that was never begun")
    delta.transaction = None


def abort(delta: OpenImage) -> None:
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
