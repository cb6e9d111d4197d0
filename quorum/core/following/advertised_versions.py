"""How a voter advertises its supported versions, so that its leader notices a replaced release.

Every Fetch carries the versions until the leader has answered one. A restarted voter has advertised
nothing yet, so its first Fetches carry the versions of its new release. The leader also asks
(``leadership_term``), for releases that do not advertise versions.

See: KIP-584; KIP-853 (UpdateRaftVoter).
"""

from __future__ import annotations

from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Follower
from quorum.types import NodeId, VersionRange


def versions_to_advertise(core: CoreState, peer: NodeId) -> tuple[VersionRange, ...]:
    """Return the versions for the next Fetch to ``peer``.

    Empty if the peer is not our leader or already has our versions.
    """
    role, versions = core.role, core.process.versions
    if (
        isinstance(role, Follower)
        and role.advertised_versions != versions.supported
        and versions.is_advertised
        and peer == role.leader_id
        and core.is_voter
    ):
        return versions.supported
    return ()
