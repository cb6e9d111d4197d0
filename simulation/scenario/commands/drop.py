"""drop [to=2] [from=1] [type=Fetch] [only=requests] [count=1] [notify=yes] [code=NAME]

Lose the queued messages that match. With ``notify=yes`` the sender of a request is notified at
once that no response will come, as when a connection breaks; with a code, as when the handshake was
refused with it.
"""

from __future__ import annotations

from quorum.core.messages.message_types import Request
from quorum.errors import ErrorCode
from simulation.scenario.filters import filter_of
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.outlet import Kind
from simulation.scenario.render import message_line
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    wanted = filter_of(args)
    count = args.number("count", 0)
    is_notified = args.text("notify") == "yes"
    code = ErrorCode[args.text("code") or "NONE"]
    args.finish()
    chosen = [each for each in world.queue if wanted.matches(each)][: count or None]
    if not chosen:
        raise ScenarioError("drop: no message in flight matches")
    for envelope in chosen:
        world.queue.remove(envelope)
        world.announce(
            Kind.MESSAGE,
            f"{envelope.sender}->{envelope.to} lost {message_line(envelope.message)}",
        )
        world.outlet.end_step()
        if is_notified and isinstance(envelope.message, Request):
            world.unanswered(envelope, code)
