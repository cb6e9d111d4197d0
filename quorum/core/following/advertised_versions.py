"""What a voter tells its leader of its own release, so that a release that was replaced is known.

It rides on every Fetch until the leader has answered one of them: a voter that has started again
follows anew and has told nothing yet, so its first Fetches say what is true from now on. A leader
asks as well (``leadership_term``), for releases that say nothing by themselves.

See: KIP-584; KIP-853 (UpdateRaftVoter).
"""

from __future__ import annotations

from quorum.core.state.core_state import CoreState
from quorum.core.state.peers import InFlight
from quorum.core.state.roles import Follower
from quorum.types import NodeId, VersionRange


def versions_to_advertise(core: CoreState, peer: NodeId) -> tuple[VersionRange, ...]:
    """What the next Fetch to ``peer`` says; empty for whom it is not for, or who knows it."""
    role, versions = core.role, core.versions
    if (
        isinstance(role, Follower)
        and role.advertised_versions != versions.supported
        and versions.is_advertised
        and peer == role.leader_id
        and core.is_voter
    ):
        return versions.supported
    return ()


def note_answered(role: Follower, flight: InFlight) -> None:
    """The leader has answered a Fetch usefully, and so has heard what it told."""
    if flight.supported:
        role.advertised_versions = flight.supported
