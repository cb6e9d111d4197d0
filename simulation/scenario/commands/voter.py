"""voter N add M [disk=0] [at=host] [ack=append] [timeout=500] [readmit=yes] [versions=(0,1)]
voter N remove M [disk=0] [timeout=500]
voter N update M [disk=0] [at=host] [versions=(0,1)]

Ask node N to add, remove or update voter M, as an operator would. ``disk`` numbers M's disks, each
with a directory id of its own, ``none`` leaves it out; ``at`` is the host it is said to be reached
at. The outcome is printed when it comes.
"""

from __future__ import annotations

from quorum.core.contract.local_events import AddVoter, RemoveVoter, UpdateVoter
from quorum.core.contract.output import VoterChangeAnswered
from quorum.types import Endpoint, ReplicaKey, Voter
from simulation.scenario.grammar import Arguments, ScenarioError
from simulation.scenario.member import key_of
from simulation.scenario.outlet import Kind
from simulation.scenario.world import World

_NOTICES = {"add": AddVoter, "remove": RemoveVoter, "update": UpdateVoter}


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

    def answered(answer: VoterChangeAnswered) -> None:
        at = f" at {answer.offset}" if answer.offset >= 0 else ""
        unknown = " (outcome unknown)" if answer.is_outcome_unknown else ""
        world.coverage.told(_NOTICES[verb], answer.error)
        world.announce(
            Kind.ANSWER, f"{node_id} says {verb} {target}: {answer.error.name}{at}{unknown}"
        )

    def ask() -> None:
        if replica is None:
            return
        changes = replica.driver.voter_changes
        match verb:
            case "add":
                changes.add(
                    voter,
                    answered,
                    ack_when_committed=not is_early,
                    timeout_ms=timeout_ms,
                    readmit=is_readmitted,
                )
            case "remove":
                changes.remove(voter.key, answered, timeout_ms=timeout_ms)
            case "update":
                changes.update(voter, answered, timeout_ms=timeout_ms)
            case _:
                raise ScenarioError(f"voter: {verb} is not add, remove or update")
        replica.turn()

    world.step(node_id, ask)
