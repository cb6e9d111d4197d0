"""The state that a simulated consumer gets in place of records that were trimmed, and its check.

It must be that of the lowest checkpoint that the node has at or above the position and its log
start, as that checkpoint was written, without its secrets. Where the node has none, its present
state counts.
"""

from __future__ import annotations

from quorate.services.log_reads import LogReads
from quorate.services.watch_cursor import WatchCursor
from quorum.v1.metadata_pb2 import StateChunk
from simulation.invariants.equal_checkpoints import EqualCheckpoints
from simulation.invariants.violation import Violation
from simulation.population import Population
from statemachine.codec import encode_record
from statemachine.dump import dump_records
from statemachine.loading import load_checkpoint
from statemachine.redacted_records import without_secrets

NAME = "checkpoint-states"
"""The invariant that violations found here are reported under."""


async def read_state(
    cluster: Population, reads: LogReads, at_least_offset: int
) -> list[StateChunk]:
    """Return the state that a node serves to a consumer below its log start.

    Raises:
        Violation: It is not the state of the checkpoint that it must be.
    """
    node = reads.node
    image = await node.checkpoint_image(at_least_offset)
    chunks = [each.state for each in WatchCursor(node).begin(image)]
    written = next(
        each for each in cluster.run_observer.invariants if isinstance(each, EqualCheckpoints)
    ).contents
    least = max(at_least_offset, node.log_start.offset)
    replica = cluster.members[node.node_id].replica
    known = () if replica is None else replica.node.snapshots
    kept = [each for each in known if each.offset >= least]
    if not kept or kept[0] not in written or (image is None and _is_damaged(cluster, node.node_id)):
        return chunks
    expected = kept[0]
    cluster.counts.checkpoint_states += 1
    if chunks[-1].offset != expected.offset:
        raise Violation(
            NAME, "the state is not that of the lowest checkpoint",
            node=node.node_id, checkpoint=expected, state=chunks[-1].offset,
        )  # fmt: skip
    records = [value for chunk in chunks for value in chunk.records]
    true = load_checkpoint(expected, [written[expected]]).image
    if records != [encode_record(without_secrets(each)) for each in dump_records(true)]:
        raise Violation(
            NAME, "the state differs from the checkpoint at its offset",
            node=node.node_id, checkpoint=expected,
        )  # fmt: skip
    return chunks


def _is_damaged(cluster: Population, node_id: int) -> bool:
    disk = cluster.members[node_id].disk
    return disk.is_suspect or disk.files.is_latent
