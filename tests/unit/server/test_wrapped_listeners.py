"""What measures and traces a replica's listener passes every call on as it came."""

from __future__ import annotations

from collections.abc import Sequence
from unittest.mock import Mock

import pytest
from prometheus_client import CollectorRegistry

from metrics.families import Families
from metrics.observer import Observer
from quorate.server.metering import MeteredListener
from quorate.server.tracing import TracedListener
from quorum.batch import VerifiedBatches
from quorum.runtime.ports import Listener


def metered(listener: Listener) -> Listener:
    return MeteredListener(listener, Observer(Families(CollectorRegistry())))


def traced(listener: Listener) -> Listener:
    return TracedListener(listener, Mock())


@pytest.mark.parametrize("wrapped", [metered, traced])
def test_batches_keep_their_headers(wrapped) -> None:  # type: ignore[no-untyped-def]
    """Goal: measuring costs no second reading of batches. Method: note what arrives behind it."""
    arrived: list[tuple[bytes, int, Sequence[VerifiedBatches]]] = []
    listener = Mock()
    listener.on_committed = lambda *given: arrived.append(given)
    batches = [VerifiedBatches(b"data", ())]
    wrapped(listener).on_committed(b"data", 7, batches)
    assert arrived == [(b"data", 7, batches)]
