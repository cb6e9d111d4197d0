"""Peers refuse a copy of a voter's disk beside its original, and the simulator checks it."""

from __future__ import annotations

import pytest

from quorum.transport.peer_sessions import PeerSession, PeerSessions
from simulation.episode import run
from simulation.options import Options

CLONES = Options("clones", voters=(3,), events=1_000)
SEED = 1


def test_copies_run_and_are_refused() -> None:
    outcome = run(SEED, CLONES)
    assert outcome.violation is None, outcome.report()
    assert outcome.counts.acts["clone"] > 0
    assert outcome.counts.copies_refused > 0


def test_a_copy_that_a_peer_accepts_is_a_violation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Break the rule of the transport: the newest session replaces any other."""

    def nobody(self: PeerSessions, peer_session: PeerSession) -> None:
        return None

    monkeypatch.setattr(PeerSessions, "conflict_of", nobody)
    outcome = run(SEED, CLONES)
    assert outcome.violation is not None
    assert outcome.violation.name == "copy-noticed"
