"""Broken read-process-write: outputs that are lost, come twice, or are a former process's."""

from __future__ import annotations

from quorate.controller import claims
from quorate.controller.group import GroupFormer
from quorate.controller.requests import NO_PRODUCER, PendingCommand
from quorate.replica.replica import Replica
from simulation import cluster
from simulation.invariants.processed_once import GROUP
from simulation.options import Options
from simulation.processors import Kind, Process
from statemachine import dump, prepare, producers
from statemachine.commands import WithPosition
from statemachine.image import MetadataImage
from statemachine.prepare import Prepared, producer_ids
from statemachine.sections.positions import PositionsImage
from statemachine.sections.producers import ProducersDelta, ProducersImage
from statemachine.sessions import BrokerGeneration
from tests.simulation.zoo.bug import Bug, Patch


def _in_every_seed(patch: Patch, *kinds: Kind) -> None:
    patch.setattr(cluster, "SHARE", 1.0)
    if kinds:
        patch.setattr(cluster, "KINDS", kinds)


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
        former: GroupFormer, pending: PendingCommand, *, may_wait: bool = True
    ) -> BrokerGeneration | None:
        context = pending.context
        state = former.delta.producers.states.get(context.producer_id)
        if type(pending.command) is WithPosition and state and context.producer_epoch < state.epoch:
            context.producer_id = NO_PRODUCER
        return evaluate(former, pending, may_wait=may_wait)

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


def requests_forgotten_with_the_process(patch: Patch) -> None:
    """A request that an earlier process of the writer has sent counts as a new one."""
    _in_every_seed(patch, Kind.REQUESTS)
    patch.setattr(claims, "first_answer_to_request", lambda *_arguments: None)


def requests_left_out_of_checkpoints(patch: Patch) -> None:
    """A checkpoint has no requests of writers, so a replica that loads one forgets them."""
    _in_every_seed(patch, Kind.REQUESTS)
    plain = dump._own

    def own(image: MetadataImage):  # type: ignore[no-untyped-def]  # as the original
        known = image.producers
        less = ProducersImage(known.next_id, known.states, known.transactional_ids, known.names)
        yield from plain(
            MetadataImage(
                image.provenance, image.features, image.cluster, image.topics, image.configs,
                image.security, less, image.positions, image.extras,
            )
        )  # fmt: skip

    patch.setattr(dump, "_own", own)


def repeated_request_takes_no_number(patch: Patch) -> None:
    """A repeated request of an ordered writer gets its answer and leaves a hole."""
    _in_every_seed(patch, Kind.REQUESTS)
    patch.setattr(GroupFormer, "_take_number", lambda *_arguments: None)


def order_not_enforced(patch: Patch) -> None:
    """A leader applies the commands of an ordered writer that follow a refused one."""
    _in_every_seed(patch, Kind.ORDER)
    patch.setattr(producers, "_check_order", lambda *_arguments: None)


def replaced_producer_not_fenced(patch: Patch) -> None:
    """A former process writes on under an id that was replaced; epochs end after three."""
    _in_every_seed(patch, Kind.POSITIONS)
    patch.setattr(producer_ids, "EPOCH_EXHAUSTED", 2)
    patch.setattr(ProducersDelta, "_replace", lambda *_arguments: None)


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
    Bug(
        "requests-forgotten-with-the-process",
        requests_forgotten_with_the_process,
        ("processed-once",),
        "360.8: a repeated request gets its first answer over processes",
        options=Options("network"),
    ),
    Bug(
        "requests-left-out-of-checkpoints",
        requests_left_out_of_checkpoints,
        ("equal-images", "equal-checkpoints", "processed-once", "no-crash"),
        "360.5: what is known of a producer survives a checkpoint",
        options=Options("crash"),
    ),
    Bug(
        "repeated-request-takes-no-number",
        repeated_request_takes_no_number,
        ("client-served",),
        "360.7: the next sequence follows the last one",
        options=Options("network"),
    ),
    Bug(
        "order-not-enforced",
        order_not_enforced,
        ("processed-once",),
        "360.6: after a fatal error all later batches fail",
        options=Options("network"),
    ),
    Bug(
        "replaced-producer-not-fenced",
        replaced_producer_not_fenced,
        ("processed-once",),
        "360.3: a zombie under the id that its name has left",
        options=Options("network"),
    ),
)
