"""A controller over a log that the test controls, and all its answers."""

from __future__ import annotations

import random

from quorate.controller.config import ControllerConfig
from quorate.controller.controller import Controller
from quorate.controller.requests import Answer, RequestContext
from quorum.batch import encode_batch, iterate_records, scan_batches
from quorum.errors import ErrorCode
from quorum.types import SnapshotId
from statemachine.codec import decode_record, encode_record
from statemachine.commands import Command, ConfigChange, IncrementalAlterConfigs, InitProducerId
from statemachine.machine import StateMachine
from statemachine.records import (
    FeatureLevelRecord,
    MetadataRecord,
    RegisterBrokerRecord,
    TopicRecord,
)
from tests.support.fake_log_driver import FakeLogDriver

BOOTSTRAP: tuple[MetadataRecord, ...] = (
    FeatureLevelRecord("metadata.version", 33),
    RegisterBrokerRecord(broker_id=1, incarnation_id=b"i" * 16, broker_epoch=1, fenced=False),
    TopicRecord("t", b"t" * 16),
)
"""Broker 1 is unfenced and topic "t" exists."""


class Bench:
    """A clock that a test moves by setting ``now``; the wall clock is 1,000 ms ahead of it."""

    def __init__(
        self,
        *,
        bootstrap: tuple[MetadataRecord, ...] = BOOTSTRAP,
        is_active: bool = True,
        **config: object,
    ) -> None:
        settings: dict[str, object] = {"cluster_id": "c", "idle_interval_ms": 0, **config}
        self.checkpoints: dict[SnapshotId, list[bytes]] = {}
        self.faults: list[str] = []
        self.answers: list[tuple[object, Answer]] = []
        self.now = 0
        self.deadline_ms: int | None = None
        self.controller = Controller(
            ControllerConfig(**settings),  # type: ignore[arg-type]
            StateMachine(),
            rng=random.Random(1),
            open_checkpoint=self.checkpoints.__getitem__,
            bootstrap=bootstrap,
            on_fault=self.faults.append,
        )
        self.log = FakeLogDriver(self.controller)
        if is_active:
            self.activate()

    def activate(self) -> None:
        """Win an election and commit what activation writes."""
        self.log.elect()
        self.flush()
        self.log.settle()
        self.log.proposals.clear()

    def submit(self, command: Command, tag: object = None, **context: object) -> None:
        self.controller.submit(
            command,
            RequestContext(**context),  # type: ignore[arg-type]
            lambda answer: self.answers.append((tag, answer)),
        )

    def ask(self, command: Command, **context: object) -> Answer:
        """Submit, commit and return the answer."""
        self.submit(command, **context)
        self.flush()
        self.log.settle()
        self.log.confirm_reads()
        return self.answers.pop()[1]

    def flush(self, now: int | None = None) -> None:
        self.now = self.now if now is None else now
        self.deadline_ms = self.controller.turn(self)

    def tick(self, now: int) -> None:
        self.controller.note_time(now)
        self.flush(now)

    def now_ms(self) -> int:
        return self.now

    def wall_ms(self) -> int:
        return 1_000 + self.now

    def codes(self) -> list[tuple[object, ErrorCode]]:
        """Return the answers since the last call, in order."""
        taken, self.answers = self.answers, []
        return [(tag, answer.code) for tag, answer in taken]

    def producer(self) -> int:
        """Return a new producer id that is committed."""
        return int(str(self.ask(InitProducerId()).result["producer_id"]))

    def last_records(self) -> list[MetadataRecord]:
        """Return the records of the log's last batch."""
        return records_of(self.log.batches[-1][2])

    def value(self, key: str = "retention.ms") -> str | None:
        return self.controller.image.configs.value(2, "t", key)


def set_config(
    value: object, key: str = "retention.ms", topic: str = "t", *, dry_run: bool = False
) -> IncrementalAlterConfigs:
    change = ConfigChange(key, 0, str(value))
    return IncrementalAlterConfigs(2, topic, (change,), dry_run=dry_run)


def records_of(data: bytes) -> list[MetadataRecord]:
    """The data records of whole batches, decoded."""
    return [
        decode_record(record.value or b"")
        for header in scan_batches(data)
        if not header.is_control
        for record in iterate_records(data, header)
    ]


def foreign_batch(*records: MetadataRecord) -> bytes:
    """One batch as another leader would have written it."""
    return encode_batch([encode_record(r) for r in records], base_offset=0, epoch=1, timestamp=5)
