"""answer 2->1 Vote granted=yes [epoch=2] [leader=-1] [error=NONE]
answer 1->3 Fetch epoch=2 leader=1 hw=9 [start=0] [diverging=5/1] [at=host] [port=0]
answer 1->2 ReadPosition epoch=1 leader=1 read=7
answer 1->2 BeginQuorumEpoch epoch=1 leader=1                    (or EndQuorumEpoch)

Forge the response to the first queued request of that kind. In ``answer 2->1`` the request is from
node 1 to node 2 and is lost. Defaults: no error, the epoch of the request, no leader.
"""

from __future__ import annotations

from quorum.core.messages.message_types import Request
from simulation.scenario.forged_answers import forged_answer
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.outlet import Kind
from simulation.scenario.render import message_line, type_name
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    sender_text, arrow, to_text = args.word("a link such as 2->1").rpartition("->")
    kind = args.word("the type of a request")
    if not arrow:
        raise ScenarioError("answer needs a link such as 2->1")
    sender, to = args.number_in("a node", sender_text), args.number_in("a node", to_text)
    for envelope in world.queue:
        asked = envelope.message
        is_meant = (envelope.sender, envelope.to, type_name(asked)) == (to, sender, kind)
        if is_meant and isinstance(asked, Request):
            world.queue.remove(envelope)
            response = forged_answer(kind, asked.request_id, asked.epoch, args)
            args.finish()
            world.announce(Kind.MESSAGE, f"{sender}->{to} forged {message_line(response)}")
            world.receive(sender, to, response)
            return
    raise ScenarioError(f"answer: no {kind} from {to} to {sender} is in flight")
