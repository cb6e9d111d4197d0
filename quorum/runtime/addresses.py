"""Where replicas are to be reached, as the core says it and the network wants to hear it."""

from __future__ import annotations

from quorum.core.contract.output import LeaderEndpoints, PeerEndpoints, VotersChanged
from quorum.types import NodeId


def addresses_in(told: VotersChanged | LeaderEndpoints | PeerEndpoints) -> dict[NodeId, str]:
    """``host:port`` by node; who has no endpoint is left out. Peers' listener comes first."""
    match told:
        case VotersChanged(voters=voters):
            return {each.key.id: each.endpoints[0].address for each in voters if each.endpoints}
        case LeaderEndpoints(leader=leader, addresses=addresses):
            return {leader.id: addresses[0]} if addresses else {}
        case PeerEndpoints(peer=peer, endpoints=endpoints):
            return {peer: endpoints[0].address} if endpoints else {}
