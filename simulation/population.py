"""The nodes of a simulated cluster and the links between them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import replace

from quorum.types import NodeId, ReplicaKey
from simulation.environment import Environment, directory_id_of
from simulation.member import Member
from simulation.network import Network
from simulation.options import Options
from simulation.relays import Relays, shortened
from simulation.seeded_random import SeededRandom
from simulation.trace import Trace


class Population(Environment):
    """Voters and observers on one network, as faults and clients see them."""

    def __init__(self, root: SeededRandom, trace: Trace, options: Options) -> None:
        super().__init__(root, trace, options)
        self.members: dict[NodeId, Member] = {}
        self.network = Network(self, self.members, SeededRandom(root.getrandbits(64)))

    def settle(self, root: SeededRandom) -> None:
        """Plan the relays, and format a disk for every node."""
        if self.options.faults.relayed:
            self._lay_out_relays(random.Random(root.getrandbits(64)))
        for node_id in (*self.voter_ids, *self.observer_ids):
            member = self.members[node_id] = Member(
                self,
                self.network,
                ReplicaKey(node_id, directory_id_of(node_id)),
                self.bootstrap_voters if node_id in self.voter_ids else (),
                SeededRandom(root.getrandbits(64)),
            )
            member.disk.on_bite = self._call_failed

    def _lay_out_relays(self, rng: random.Random) -> None:
        share = rng.choice(self.options.faults.relayed)
        self.relays = Relays.draw(rng, self.observer_ids, share)
        quorum = shortened(self.settings.quorum, rng)
        self.settings = replace(self.settings, quorum=quorum)

    def _call_failed(self, kind: str) -> None:
        """Count a call that a fault of the disk made fail."""
        self.happened(f"failed-{kind}")

    def known_to_clients(self) -> Sequence[NodeId]:
        """Return the nodes that a client without a hint asks: the first voters.

        All nodes that clients reach, if they reach none of the first voters. Others may have
        replaced all of those as voters, and an operator then gives clients other addresses.
        """
        reaches = self.network.reaches_client
        if any(reaches(each) for each in self.voter_ids):
            return self.voter_ids
        return [each for each in self.members if reaches(each)] or self.voter_ids

    def state_of(self, node_id: NodeId) -> str:
        """Return a node's state for the trace."""
        return self.members[node_id].state()
