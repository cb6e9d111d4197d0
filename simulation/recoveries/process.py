"""Programs that read, process and write exactly once, in a log that loses history.

Output and position of input n are one batch. The metadata of the position names the process, so
the log shows whose write it is.
"""

from __future__ import annotations

import random

from quorate.controller.requests import Answer, RequestContext
from quorum.batch import record_values, scan_batches
from quorum.errors import ErrorCode
from simulation.invariants.violation import Violation
from simulation.recoveries.counts import RecoveryCounts
from simulation.recoveries.world import Node, World
from statemachine.codec import decode_record
from statemachine.commands import (
    Command,
    CommitPosition,
    ConfigChange,
    IncrementalAlterConfigs,
    InitProducerId,
    ResourceType,
    WithPosition,
)
from statemachine.records import CommittedPositionRecord, ConfigRecord, TransactionalIdRecord

PROCESSED_ONCE = "recovery-processed-once"
"""An input's output is in the surviving history twice, or one is missing before it."""
ZOMBIE = "recovery-zombie"
"""A former process wrote."""
GROUP = "copier"
PRINCIPAL = "processor"
PATIENCE = 300
"""Steps after which a request is sent again."""
_FENCED = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH})
_OVER = _FENCED | {
    ErrorCode.UNKNOWN_PRODUCER_ID,
    ErrorCode.INVALID_PRODUCER_ID_MAPPING,
    ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
    ErrorCode.DUPLICATE_SEQUENCE_NUMBER,
    ErrorCode.LOG_INCARNATION_MISMATCH,
}
"""Another process begins: this one is a former one, or has read what may be gone."""


class Process:
    """One process, from its start until it is refused.

    Like the client library it does not go back to a leader of an older epoch than it has met. A
    deposed leader may have granted the same producer epoch to another process, in records that a
    recovery commits by force.
    """

    def __init__(self, number: int, rng: random.Random, counts: RecoveryCounts) -> None:
        self.number = number
        self._rng = rng
        self._counts = counts
        self.world: World
        self._producer: tuple[int, int] | None = None
        self._position = -1
        self._incarnation = b""
        self._leader_epoch = 0
        """The newest that an answer came from."""
        self._sequence = 0
        self._waited = 0
        self._attempts = 0
        self._answers: list[Answer] = []
        self._request = 0
        self.newest = 0
        """The highest input that was acknowledged to this process."""
        self.has_ended = False

    def step(self) -> None:
        """Take the answer, or send the request, perhaps again."""
        if self.has_ended:
            return
        if self._answers:
            answer = self._answers[0]
            self._answers.clear()
            self._receive(answer)
        self._waited -= 1
        if self._waited <= 0 and not self.has_ended:
            self._waited = PATIENCE
            self._send()

    def _leader(self) -> Node | None:
        leaders = [
            each
            for each in self.world.nodes.values()
            if each.running.node.is_leader and each.running.node.epoch >= self._leader_epoch
        ]
        return self._rng.choice(leaders) if leaders else None

    def _send(self) -> None:
        node = self._leader()
        if node is None:
            return
        if self._producer is None:
            self._submit(node, InitProducerId(GROUP), RequestContext(PRINCIPAL))
        elif self._position < 0:
            self._read(node)
        else:
            number = self._position + 1
            change = ConfigChange("metrics", 0, str(number))
            output = IncrementalAlterConfigs(int(ResourceType.CLIENT_METRICS), GROUP, (change,))
            position = CommitPosition(
                GROUP, number, log_incarnation=self._incarnation, metadata=str(self.number)
            )
            context = RequestContext(PRINCIPAL)
            context.producer_id, context.producer_epoch = self._producer
            context.sequence = context.oldest_open = self._sequence
            context.is_repeat = self._attempts > 0
            self._counts.repeats += context.is_repeat
            self._attempts += 1
            self._submit(node, WithPosition(output, position), context, number)

    def _submit(
        self, node: Node, command: Command, context: RequestContext, number: int = 0
    ) -> None:
        self._request += 1
        request = self._request

        def answered(answer: Answer) -> None:
            if answer.code is ErrorCode.NONE:
                node.world.acknowledged = max(node.world.acknowledged, number)
            if request == self._request:
                self._answers.append(answer)

        node.running.controller.submit(command, context, answered)
        node.running.turn()
        node.work()

    def _read(self, node: Node) -> None:
        """Read the group's position at a linearizable read, and the incarnation of the log."""
        replica = node.running

        def confirmed(offset: int | None) -> None:
            if offset is not None:
                replica.controller.wait_applied(offset, read)

        def read() -> None:
            if self._position < 0:
                found = replica.controller.image.positions.of(GROUP)
                self._position = 0 if found is None else found.offset
                end = replica.node.log_end_offset
                self._incarnation = replica.node.voter_set_at(end).incarnation.id
                self._waited = 0

        replica.controller.confirm_read(confirmed)
        replica.turn()
        node.work()

    def _receive(self, answer: Answer) -> None:
        self._request += 1
        if answer.code is ErrorCode.NONE:
            self._leader_epoch = max(self._leader_epoch, answer.epoch)
            self._waited = self._rng.randint(1, 20)
            if self._producer is None:
                result = answer.result
                self._producer = int(str(result["producer_id"])), int(str(result["producer_epoch"]))
                return
            self._position += 1
            self._sequence += 1
            self._attempts = 0
            self.newest = self._position
            self._counts.processed += 1
        elif answer.code in _OVER:
            self.has_ended = True
            self._counts.zombies += answer.code in _FENCED
            self._counts.stale_positions += answer.code is ErrorCode.LOG_INCARNATION_MISMATCH
        else:
            self._waited = self._rng.randint(1, 20)


def check_outputs(log: bytes, *, acknowledged: int = 0) -> int:
    """Check the outputs in a log, and return the input of the last one.

    Raises:
        Violation: An output is there twice, one is missing, or a former process wrote one.
    """
    last = _check_outputs(log)
    if last < acknowledged:
        raise Violation(
            PROCESSED_ONCE, "an acknowledged output is missing", last=last,
            acknowledged=acknowledged,
        )  # fmt: skip
    return last


def _check_outputs(log: bytes) -> int:
    last = output = 0
    identity = (-1, -1)
    writer = ""
    for header in scan_batches(log):
        if header.is_control:
            continue
        if output != last:
            raise Violation(
                PROCESSED_ONCE, "an output and its position are not in one batch", output=output,
                position=last, before=header.base_offset,
            )  # fmt: skip
        for value in record_values(log, header):
            record = decode_record(bytes(value or b""))
            if isinstance(record, TransactionalIdRecord) and record.transactional_id == GROUP:
                identity, writer = (record.producer_id, record.producer_epoch), ""
            elif isinstance(record, ConfigRecord) and record.resource_name == GROUP:
                if record.value != str(output + 1):
                    raise Violation(
                        PROCESSED_ONCE, "an input was processed twice, or never", before=output,
                        found=record.value, at=header.base_offset,
                    )  # fmt: skip
                output += 1
            elif isinstance(record, CommittedPositionRecord):
                if record.offset != last + 1:
                    raise Violation(
                        PROCESSED_ONCE, "outputs do not follow one another", before=last,
                        found=record.offset, at=header.base_offset,
                    )  # fmt: skip
                last = record.offset
                found = (header.producer_id, header.producer_epoch)
                if found != identity or record.metadata != (writer or record.metadata):
                    raise Violation(
                        ZOMBIE, "a former process wrote", at=header.base_offset, found=found,
                        current=identity, process=record.metadata, current_process=writer,
                    )  # fmt: skip
                writer = record.metadata
    if output != last:
        raise Violation(PROCESSED_ONCE, "the last output has no position", output=output)
    return last
