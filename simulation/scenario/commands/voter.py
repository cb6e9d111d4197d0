"""voter N add M [disk=0] [at=host] [ack=append] [timeout=500] [readmit=yes] [versions=(0,1)]
voter N remove M [disk=0] [timeout=500]
voter N update M [disk=0] [at=host] [versions=(0,1)]

Ask node N to add, remove or update voter M, as an operator would. ``disk``: number of M's disk,
each with its own directory id; ``none`` leaves the directory id out. ``at``: M's host in the
request. The answer is printed when it comes.
"""

from __future__ import annotations

from quorum.core.contract.local_events import NO_TOKEN, AddVoter, RemoveVoter, UpdateVoter
from quorum.core.contract.output import RequestSettled
from quorum.types import Endpoint, ReplicaKey, Voter
from simulation.operator import asked
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.member import key_of
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World


def run(world: World, args: Arguments) -> None:
    node_id, verb = args.node(), args.word("add, remove or update")
    target = args.node()
    host = args.text("at", f"node{target}")
    lowest, highest = args.numbers("versions") or (0, 1)
    is_nameless = args.text("disk") == "none"
    voter = Voter(
        ReplicaKey(target) if is_nameless else key_of(target, args.number("disk", 0)),
        (Endpoint("CONTROLLER", host, 9093),),
        lowest,
        highest,
    )
    timeout_ms = args.number("timeout", 0)
    is_early, is_readmitted = args.text("ack") == "append", args.text("readmit") == "yes"
    args.finish()
    replica = world.running(node_id).replica

    def answered(answer: RequestSettled) -> None:
        at = f" at {answer.offset}" if answer.offset >= 0 else ""
        unknown = " (outcome unknown)" if answer.is_outcome_unknown else ""
        world.coverage.answered(type(change), answer.error)
        world.announce(
            Kind.ANSWER, f"{node_id} answers {verb} {target}: {answer.error.name}{at}{unknown}"
        )

    origin = asked(verb, target)
    change: AddVoter | RemoveVoter | UpdateVoter
    match verb:
        case "add":
            change = AddVoter(NO_TOKEN, voter, not is_early, timeout_ms, is_readmitted, origin)
        case "remove":
            change = RemoveVoter(NO_TOKEN, voter.key, timeout_ms, origin)
        case "update":
            change = UpdateVoter(NO_TOKEN, voter, timeout_ms, origin)
        case _:
            raise ScenarioError(f"voter: {verb} is not add, remove or update")

    def ask() -> None:
        if replica is not None:
            replica.ask(change, answered)

    world.step(node_id, ask)
