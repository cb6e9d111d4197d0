"""Broken read-process-write: outputs that are lost, come twice, or are a former process's."""

from __future__ import annotations

from quorate.controller.group import GroupFormer
from quorate.controller.requests import NO_PRODUCER, OnAnswer, RequestContext
from quorate.replica.replica import Replica
from simulation import cluster
from simulation.invariants.processed_once import GROUP
from simulation.options import Options
from simulation.processors import Process
from statemachine import dump, prepare
from statemachine.commands import Command, WithPosition
from statemachine.image import MetadataImage
from statemachine.prepare import Prepared
from statemachine.sections.positions import PositionsImage
from tests.simulation.zoo.bug import Bug, Patch


def _in_every_seed(patch: Patch) -> None:
    patch.setattr(cluster, "SHARE", 1.0)


def position_in_another_batch(patch: Patch) -> None:
    """A command is written without the position that it carries."""
    _in_every_seed(patch)

    def with_position(prepared: Prepared, committed: Prepared) -> Prepared:
        return prepared if prepared.records else committed

    patch.setattr(prepare, "with_position", with_position)


def former_process_not_refused(patch: Patch) -> None:
    """A leader evaluates a command with an older producer epoch as one without a number."""
    _in_every_seed(patch)
    evaluate = GroupFormer.evaluate

    def lenient(
        former: GroupFormer, command: Command, context: RequestContext, on_answer: OnAnswer
    ) -> None:
        state = former.delta.producers.state(context.producer_id)
        if type(command) is WithPosition and state and context.producer_epoch < state.epoch:
            context.producer_id = NO_PRODUCER
        evaluate(former, command, context, on_answer)

    patch.setattr(GroupFormer, "evaluate", lenient)


def position_of_a_lagging_replica(patch: Patch) -> None:
    """A process begins at the position that any replica has applied, not at a linearizable read."""
    _in_every_seed(patch)

    def read(process: Process, _node_id: int, request: int) -> None:
        def ask(replica: Replica) -> None:
            found = replica.controller.image.positions.of(GROUP)
            process._position = 0 if found is None else found.offset
            process._later()

        node_id = process._rng.choice(process._cluster.voter_ids)
        process._cluster.members[node_id].serve("process reads its position", ask)

    patch.setattr(Process, "_read", read)


def positions_left_out_of_checkpoints(patch: Patch) -> None:
    """A checkpoint has no committed positions, so a replica that loads one forgets them."""
    _in_every_seed(patch)
    plain = dump._own

    def own(image: MetadataImage):  # type: ignore[no-untyped-def]  # as the original
        yield from plain(
            MetadataImage(
                image.provenance, image.features, image.cluster, image.topics, image.configs,
                image.security, image.producers, PositionsImage(), image.extras,
            )
        )  # fmt: skip

    patch.setattr(dump, "_own", own)


BUGS = (
    Bug(
        "position-in-another-batch",
        position_in_another_batch,
        ("processed-once",),
        "KIP-447: offsets and output in one transaction",
        options=Options("network"),
    ),
    Bug(
        "former-process-not-refused",
        former_process_not_refused,
        ("processed-once",),
        "KIP-447: a zombie commits after its successor began",
        options=Options("network"),
    ),
    Bug(
        "position-of-a-lagging-replica",
        position_of_a_lagging_replica,
        ("processed-once",),
        "KIP-447: a process begins at a stale offset",
        options=Options("network"),
    ),
    Bug(
        "positions-left-out-of-checkpoints",
        positions_left_out_of_checkpoints,
        ("equal-images", "equal-checkpoints", "processed-once", "no-crash"),
        "320.6: committed positions survive a checkpoint",
        options=Options("crash"),
    ),
)
