"""No producer id is allocated twice, in a block or alone (requirements 360; KIP-730)."""

from __future__ import annotations

from simulation.invariants.contents import metadata_of
from simulation.invariants.invariant import Invariant
from simulation.invariants.mirror import Batch
from simulation.invariants.run_observer import RunObserver
from simulation.invariants.seen import Seen
from statemachine.records import InitProducerRecord


class ProducerBlocks(Invariant):
    """The block of one command overlaps no other command's block, and contains no writer's own id.

    A repeated command may get the same block again, from any leader, because leaders do not know
    which answers were lost. Every block that was sent in an answer counts, delivered or not.
    """

    name = "producer-blocks"

    def __init__(self, run_observer: RunObserver) -> None:
        super().__init__(run_observer)
        self.blocks: dict[tuple[int, int, int], tuple[int, int]] = {}
        """By producer, epoch and sequence of the command: [first, end)."""
        self.writers: set[int] = set()

    def on_block(self, seen: Seen, command: tuple[int, int, int], first: int, count: int) -> None:
        block = (first, first + count)
        self.require(count > 0, "an empty block", node=seen.id, command=command)
        if self.blocks.get(command) == block:
            return
        for other, (begin, end) in self.blocks.items():
            self.require(
                block[1] <= begin or end <= first,
                "ids of one block are in another",
                node=seen.id,
                command=command,
                block=block,
                other=other,
                others=(begin, end),
            )
        self.blocks[command] = block
        for producer_id in self.writers:
            self._check_writer(producer_id, block)

    def on_committed(self, seen: Seen, batches: list[Batch], end_offset: int) -> None:
        for batch in batches:
            for record in metadata_of(batch):
                if isinstance(record, InitProducerRecord):
                    self.writers.add(record.producer_id)
                    for block in self.blocks.values():
                        self._check_writer(record.producer_id, block)

    def _check_writer(self, producer_id: int, block: tuple[int, int]) -> None:
        self.require(
            not block[0] <= producer_id < block[1],
            "a writer's own id is in a block",
            producer_id=producer_id,
            block=block,
        )
