"""What a voter asks before epoch 1 and no longer afterwards, on a state built by hand."""

from __future__ import annotations

import pytest

from quorum.core.election.bootstrapping import bootstrap_deadlines, poll_bootstrap
from quorum.core.messages.bootstrap_messages import BootstrapRequest
from quorum.core.state.bootstrap_peer import BootstrapPeer
from quorum.core.state.peer_requests import PeerRequest, Purpose
from quorum.core.state.roles import Unattached
from quorum.types import BootstrapState, ElectionState
from tests.support.bare_core import NOW_MS, core_of, sent_of
from tests.support.core_disk import key


@pytest.mark.parametrize("epoch", [0, 1])
def test_only_before_the_first_epoch_are_the_other_voters_asked(epoch: int) -> None:
    """Later the questions under way are closed, and those of other kinds stay open."""
    core = core_of(Unattached(NOW_MS + 1))
    core.adopt_election(ElectionState(epoch, bootstrap_state=BootstrapState(b"i" * 16)))
    peer = BootstrapPeer(2, NOW_MS + 5, voter=key(2))
    core.bootstrap.peers[2] = peer
    core.requests.open(peer, 5)
    core.requests.open(PeerRequest(3, Purpose.VOTE), 6)
    poll_bootstrap(core)
    asked = [to for to, _ in sent_of(core, BootstrapRequest)]
    assert asked == ([3] if epoch == 0 else [])
    assert list(core.bootstrap.peers) == ([2, 3] if epoch == 0 else [])
    assert peer.request_id == (5 if epoch == 0 else 0)
    assert core.requests.get(6) is not None
    due_ms = [NOW_MS + 5, NOW_MS + core.config.request_timeout_ms]
    assert list(bootstrap_deadlines(core)) == (due_ms if epoch == 0 else [])
