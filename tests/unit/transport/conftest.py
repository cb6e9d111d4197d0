"""One contract for both carriers of the peer stream."""

from __future__ import annotations

import pytest

from tests.support import peer_harness


@pytest.fixture(params=[peer_harness.GRPC, peer_harness.TCP])
def carrier(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Let the replicas of this test talk over gRPC, then over TCP."""
    name: str = request.param
    monkeypatch.setattr(peer_harness, "CARRIER", name)
    return name
