"""Record what the clients of one run receive as a history, and check it when the run ends.

Writers record their requests and answers. ``Readers`` read from any replica, observers included, at
all three consistency levels. The check knows nothing of replicas or faults: it sees answers only.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping

from history.check import check
from history.history import History, LogBatch
from history.operation import Action, Level, Operation, Value
from history.recorder import Recorder
from history.search import CheckResult
from quorate.controller.requests import Answer
from quorate.replica.replica import Replica
from quorum.control_origin import origin_headers
from quorum.errors import CommandError
from quorum.types import NodeId
from simulation.commands import STRANGERS
from simulation.invariants.contents import controls_of, metadata_of, records_of
from simulation.invariants.mirror import Batch
from simulation.invariants.violation import Violation
from simulation.population import Population
from simulation.record_digest import digest_of
from statemachine.codec import batch_headers
from statemachine.commands import (
    Command,
    ConfigOperation,
    CreatePartitions,
    CreateTopic,
    DeleteTopic,
    IncrementalAlterConfigs,
    ResourceType,
)
from statemachine.image import MetadataImage
from statemachine.producers import HEADER_ANSWER, is_refusal
from statemachine.records import ConfigRecord

NAME = "history"
"""The invariant that violations found here are reported under."""
TOPIC = "topic:"
METRICS = "metrics:"
CONFIG = "metrics"
STEPS_MAX = 200_000
READ_PAUSE_US = (1_000, 15_000)
TRAVEL_US = (50, 2_000)
READERS = 2
_LEVELS = tuple(Level)
_LEVEL_WORDS: dict[Level | None, str] = {None: "", **{each: each.value for each in Level}}
_WAYS = {
    int(ConfigOperation.SET): "set",
    int(ConfigOperation.DELETE): "delete",
    int(ConfigOperation.APPEND): "append",
}
Asked = tuple[str, Action, dict[str, Value]]


class Recording:
    """The history of one run. A writer's operations are identified by writer and sequence."""

    def __init__(self, cluster: Population, seed: int) -> None:
        self.history = History(notes={"seed": seed})
        self.recorder = Recorder(self.history, lambda: cluster.scheduler.now_us)
        self.keys: list[str] = []
        """Every resource that was written to, in the order of the first write."""
        self.newest_offset = 0
        """The highest one in any client's answer."""
        self._open: dict[tuple[int, int], Operation] = {}
        self._known: set[str] = set()
        self._marks: set[str] = set()
        self._refused: set[str] = set()
        """Every command whose writer got a refusal, also of kinds that the model ignores."""
        self._batches: dict[str, Batch] = {}
        cluster.run_observer.on_commit(self._committed)

    def called(
        self, client: int, sequence: int, command: Command, producer: tuple[int, int] | None
    ) -> None:
        """Record that a writer sends a command, for the first time or again."""
        asked = _asked(command)
        if asked is None or producer is None or (client, sequence) in self._open:
            return
        key, action, arguments = asked
        if key not in self._known:
            self._known.add(key)
            self.keys.append(key)
        mark = _mark(*producer, sequence)
        self._marks.add(mark)
        operation = self.recorder.begin(f"c{client}", key, action, arguments, mark=mark)
        self._open[client, sequence] = operation

    def answered(self, client: int, sequence: int, answer: Answer) -> None:
        """Record that a writer got the acknowledgement of its command."""
        operation = self._open.get((client, sequence))
        if operation is not None:
            self.newest_offset = max(self.newest_offset, answer.offset)
            self.recorder.ok(
                operation, offset=answer.offset, epoch=answer.epoch, result=_result(answer)
            )

    def refused(
        self, client: int, sequence: int, answer: Answer, producer: tuple[int, int]
    ) -> None:
        """Record that a writer got a refusal: the command must never take effect."""
        self._refused.add(_mark(*producer, sequence))
        operation = self._open.get((client, sequence))
        if operation is not None:
            self.recorder.failed(operation, answer.code.name)

    def _committed(self, batches: list[Batch]) -> None:
        for batch in batches:
            marks: tuple[str, ...] = ()
            if batch.producer_id >= 0 and not _is_strangers(batch):
                mark = _mark(batch.producer_id, batch.producer_epoch, batch.sequence)
                self._batches[mark] = batch
                if mark in self._marks and not _is_refusal(batch):
                    marks = (mark,)
            self.history.log.append(
                LogBatch(batch.base_offset, batch.end_offset, batch.epoch, _digest(batch), marks)
            )

    def check(self) -> None:
        """Check the history against the guarantees.

        Raises:
            Violation: The history breaks a guarantee, or its check could not be decided.
        """
        for mark in sorted(self._refused & self._batches.keys()):
            if not _is_refusal(self._batches[mark]):
                end = self._batches[mark].end_offset
                raise Violation(NAME, "applied-though-refused", command=mark, end_offset=end)
        report = check(self.history, steps_max=STEPS_MAX)
        if report.check_result is not CheckResult.VALID:
            raise Violation(NAME, "\n".join(report.explanation()), operations=report.operations)


class Readers:
    """Clients that only read. Each asks one replica at a time and waits for the answer."""

    def __init__(
        self,
        cluster: Population,
        recording: Recording,
        rng: random.Random,
        is_over: Callable[[], bool],
    ) -> None:
        self._cluster = cluster
        self._recording = recording
        self._rng = rng
        self._is_over = is_over

    def start(self) -> None:
        """Start every reader."""
        for number in range(READERS):
            self._cluster.scheduler.after(5_000 * (number + 1), self._step, number)

    def _step(self, number: int) -> None:
        cluster, rng = self._cluster, self._rng
        if cluster.is_healed and self._is_over():
            return
        cluster.scheduler.after(rng.randint(*READ_PAUSE_US), self._step, number)
        keys = self._recording.keys
        if not keys:
            return
        key, level = rng.choice(keys), rng.choice(_LEVELS)
        node_id: NodeId = rng.choice(tuple(cluster.members))
        wanted = -1
        if level is Level.AT_LEAST:
            wanted = max(0, self._recording.newest_offset - rng.choice((0, 0, 1, 5)))
        operation = self._recording.recorder.begin(
            f"r{number}", key, Action.READ, level=level, at_least=wanted
        )
        cluster.scheduler.after(rng.randint(*TRAVEL_US), self._arrive, node_id, operation)

    def _arrive(self, node_id: NodeId, operation: Operation) -> None:
        def ask(replica: Replica) -> None:
            def answer() -> None:
                self._answer(node_id, replica, operation)

            def wait(offset: int | None) -> None:
                if offset is None:
                    return
                try:
                    replica.controller.wait_applied(offset, answer)
                except CommandError:
                    # Refused because too many reads are waiting.
                    return

            if operation.level is Level.LINEARIZABLE:
                replica.controller.confirm_read(wait)
            else:
                wait(operation.at_least)

        level = _LEVEL_WORDS[operation.level]
        self._cluster.members[node_id].serve(f"{operation.client} read {level}", ask)

    def _answer(self, node_id: NodeId, replica: Replica, operation: Operation) -> None:
        """Answer from the replica's present image; the answer takes a while to arrive."""
        cluster, rng = self._cluster, self._rng
        image = replica.controller.image
        seen = _seen(image, operation.key)
        session = f"n{node_id}.{cluster.members[node_id].incarnation}"
        position = image.provenance
        if cluster.is_healed or rng.random() >= cluster.plan.loss:
            cluster.scheduler.after(
                rng.randint(*TRAVEL_US),
                self._hear, operation, position.end_offset, position.epoch, seen, session,
            )  # fmt: skip

    def _hear(
        self, operation: Operation, offset: int, epoch: int, seen: dict[str, Value], session: str
    ) -> None:
        recording = self._recording
        recording.newest_offset = max(recording.newest_offset, offset)
        recording.recorder.ok(operation, offset=offset, epoch=epoch, result=seen, session=session)
        self._cluster.counts.reads += operation.level is Level.LINEARIZABLE


def _is_strangers(batch: Batch) -> bool:
    """Return whether a stranger wrote that batch under a client's producer."""
    return any(
        isinstance(record, ConfigRecord) and record.resource_name == STRANGERS
        for record in metadata_of(batch)
    )


def _is_refusal(batch: Batch) -> bool:
    """Return whether a batch only takes the number of a refused command."""
    first = records_of(batch)[0]
    for name, value in batch_headers(first.headers, first.value):
        if name == HEADER_ANSWER and is_refusal(value):
            return True
    return False


def _digest(batch: Batch) -> str:
    """Return the digest as watchers compute it; of control records they see who asked, and why."""
    if batch.is_control:
        found = [each for control in controls_of(batch) for each in origin_headers(control)]
        return digest_of([], found)
    records = records_of(batch)
    headers = batch_headers(records[0].headers, records[0].value)
    return digest_of([record.value or b"" for record in records], headers)


def _mark(producer_id: int, producer_epoch: int, sequence: int) -> str:
    return f"{producer_id}/{producer_epoch}/{sequence}"


def _asked(command: Command) -> Asked | None:
    """Return a command as an operation; None for a kind that the model does not know."""
    if isinstance(command, CreateTopic):
        arguments: dict[str, Value] = {"partitions": command.partition_count}
        return TOPIC + command.name, Action.CREATE, arguments
    if isinstance(command, DeleteTopic):
        return TOPIC + command.name, Action.DELETE, {}
    if isinstance(command, CreatePartitions):
        return TOPIC + command.name, Action.GROW, {"partitions": command.partition_count}
    if isinstance(command, IncrementalAlterConfigs) and (
        command.resource_type == ResourceType.CLIENT_METRICS
    ):
        changes: list[Value] = [
            [change.name, _WAYS[int(change.operation)], change.value] for change in command.changes
        ]
        return METRICS + command.resource_name, Action.ALTER, {"changes": changes}
    return None


def _result(answer: Answer) -> Mapping[str, Value]:
    topic_id = answer.result.get("topic_id")
    return {"topic_id": topic_id.hex()} if isinstance(topic_id, bytes) else {}


def _seen(image: MetadataImage, key: str) -> dict[str, Value]:
    sort, _, name = key.partition(":")
    if sort + ":" == METRICS:
        value = image.configs.value(int(ResourceType.CLIENT_METRICS), name, CONFIG)
        return {"exists": True, "configs": {CONFIG: value}}
    topic_id = image.topics.id_of(name)
    if topic_id is None:
        return {"exists": False}
    partitions = len(image.topics.partitions_of(topic_id))
    return {"exists": True, "topic_id": topic_id.hex(), "partitions": partitions}
