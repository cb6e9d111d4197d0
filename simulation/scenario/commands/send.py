"""send 9->1 Fetch epoch=1 offset=3 last_epoch=1 [wait=0] [round=1/5] [disqualified=yes]
send 9->1 FetchSnapshot epoch=1 snapshot=5/1 position=0 [bytes=100]
send 2->1 Vote epoch=2 last=5/1 [voter=1]        (or PreVote)
send 2->1 BeginQuorumEpoch epoch=2 [voter=1] [at=host] [port=9093]
send 2->1 EndQuorumEpoch epoch=2 [successors=(1,3)] [campaign=now]
send 2->1 ReadPosition epoch=1
send 2->1 ChainDigest epoch=1 offsets=(3,5)
send 2->1 Bootstrap epoch=0 [voter=1] [incarnation=none]
send 9->1 AddVoter epoch=1 [voter=9] [disk=0] [at=host] [port=0]    (or UpdateVoter)
send 9->1 RemoveVoter epoch=1 [voter=9] [disk=0] [own_disk=1]

Deliver a forged request to node 1, as if from node 9 (-1 for a consumer), even on a cut link. The
response is printed but not delivered. ``cluster=other``: of another cluster. ``from_disk=1``: from
another disk of the sender. ``voter_disk=1``: addressed to another disk of the receiver.
``proven=no``: the sender's identity is not authenticated.
"""

from __future__ import annotations

from quorum.core.messages.fetch_messages import FetchRequest
from quorum.core.node.routing import PROOF_HANDLERS
from simulation.scenario.forged_requests import forged_request
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    sender_text, arrow, to_text = args.word("a link such as 9->1").rpartition("->")
    kind = args.word("a message type")
    if not arrow:
        raise ScenarioError("send needs a link such as 9->1")
    sender, to = args.number_in("a node", sender_text), args.number_in("a node", to_text)
    world.running(to)
    world.injected += 1
    request = forged_request(kind, world.injected, sender, to, args)
    is_proven = args.text("proven") != "no"
    if not is_proven and type(request) not in (FetchRequest, *PROOF_HANDLERS):
        raise ScenarioError(f"send: a {kind} has no mark of proof")
    args.finish()
    world.receive(sender, to, request, is_proven=is_proven)
