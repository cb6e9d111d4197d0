"""Addresses of peers, as the core learns them: for the network, and for clients that ask."""

from __future__ import annotations

from quorum.core.contract.output import LeaderEndpoints, PeerEndpoints, VotersChanged
from quorum.runtime.ports import Network
from quorum.types import NO_NODE, NodeId


class PeerAddresses:
    """Passes addresses to the network; of several, the address of the peers' listener."""

    def __init__(self, network: Network) -> None:
        self._network = network
        self.leader: tuple[NodeId, tuple[str, ...]] = (NO_NODE, ())
        """The latest known leader and its advertised addresses, those of peers' listener first;
        empty if clients must not be sent there."""

    def learn(self, change: VotersChanged | LeaderEndpoints | PeerEndpoints) -> None:
        """Adopt the addresses in ``change``; only those of voters' records are no hints."""
        found: dict[NodeId, str] = {}
        match change:
            case VotersChanged(voters=voters):
                found = {who.key.id: who.endpoints[0].address for who in voters if who.endpoints}
            case LeaderEndpoints(leader=leader, addresses=addresses):
                self.leader = (leader.id, addresses if change.is_for_clients else ())
                found = {leader.id: addresses[0]} if addresses else {}
            case PeerEndpoints(peer=peer, endpoints=endpoints):
                found = {peer: endpoints[0].address} if endpoints else {}
        self._network.set_peers(found, is_hint=not isinstance(change, VotersChanged))
