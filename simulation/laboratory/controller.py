"""The controller of the laboratory: the production one, over a log that commits at once.

It decides leaders, ISRs, broker epochs and producer ids, as in a real cluster. Its quorum is not
what the laboratory is about: the simulator proves that.
"""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence

from quorate.broker_agent.image_feed import ImageChange, ImageFeed
from quorate.controller.config import ControllerConfig
from quorate.controller.controller import Controller
from quorate.controller.requests import Answer, RequestContext
from quorum.batch import BatchHeader, scan_batches
from quorum.core.contract.output import LeadershipChanged
from quorum.core.voters.voter_set import NO_VOTERS, VoterSet
from quorum.errors import InvariantViolation
from quorum.runtime.proposals import checked_end
from quorum.types import NodeId, SnapshotId, VersionRange
from statemachine.batches import decode_batch
from statemachine.commands import Command
from statemachine.image import MetadataImage
from statemachine.machine import StateMachine
from statemachine.records import FeatureLevelRecord

CLUSTER_ID = "laboratory"
METADATA_VERSION = 33


class ModelController:
    """Evaluates commands at once. Implements the controller's ``LogDriver`` and its clocks."""

    is_leader = can_write = True
    epoch = 1
    leader_id: NodeId = 1000

    def __init__(self) -> None:
        self.now = 0
        self.node = self.controls = self
        self.log_end_offset = self.high_watermark = self.flushed_end_offset = 0
        self.newest_stamp_ms = 0
        self._pending: list[bytes] = []
        self._feed = ImageFeed()
        self._changes: list[ImageChange] = []
        self._controller = Controller(
            ControllerConfig(cluster_id=CLUSTER_ID, idle_interval_ms=0),
            StateMachine(),
            rng=random.Random(1),
            open_checkpoint=_no_checkpoint,
            bootstrap=(FeatureLevelRecord("metadata.version", METADATA_VERSION),),
            on_fault=_fail,
        )
        self._controller.attach(self)
        changed = LeadershipChanged(self.leader_id, self.epoch, is_leader=True, can_write=True)
        self._controller.on_leadership(changed)
        self._turn()

    @property
    def image(self) -> MetadataImage:
        """The committed metadata."""
        return self._controller.image

    def submit(self, command: Command, principal: str = "User:laboratory") -> Answer:
        """Evaluate a command and return its answer."""
        answers: list[Answer] = []
        self._controller.submit(command, RequestContext(principal=principal), answers.append)
        self._turn()
        if not answers:
            raise InvariantViolation(f"no answer to {command}")
        return answers[0]

    def take_changes(self) -> list[ImageChange]:
        """Return the changes committed since the last call, as a reader of the log sees them."""
        changes, self._changes = self._changes, []
        return changes

    def advance(self, ms: int) -> None:
        """Let time pass: sessions of silent brokers expire."""
        self.now += ms
        self._controller.note_time(self.now)
        self._turn()

    def _turn(self) -> None:
        # What a turn commits may make another one due, such as the next fence.
        while True:
            self._controller.turn(self)
            if not self._pending:
                return
            data = b"".join(self._pending)
            self._pending.clear()
            self.flushed_end_offset = self.high_watermark = self.log_end_offset
            self._controller.on_committed(data, self.log_end_offset)
            for header in scan_batches(data):
                batch = decode_batch(data, header)
                change = self._feed.take_batch(header, batch.records, batch.headers)
                if change is not None:
                    self._changes.append(change)

    # ------------------------------------------------------------------ the log and its clocks

    def now_ms(self) -> int:
        """Return the laboratory's time."""
        return self.now

    def wall_ms(self) -> int:
        """Return the laboratory's time."""
        return self.now

    def voter_versions(self) -> Mapping[NodeId, Sequence[VersionRange] | None]:
        """Return nothing: no feature is upgraded here."""
        return {}

    def propose(self, batches: Sequence[bytes], headers: Sequence[BatchHeader]) -> int:
        """Append; committed at the end of the turn."""
        self.log_end_offset = checked_end(batches, headers, self.log_end_offset, self.epoch)
        self._pending += batches
        return self.log_end_offset

    def voter_set_at(self, end_offset: int) -> VoterSet:
        """Return a set of the first incarnation of the log: nobody recovers here."""
        del end_offset
        return NO_VOTERS

    def read(self, token: int) -> None:
        """Confirm at once: there is no other leader."""
        self._controller.on_read_confirmed(token, self.high_watermark)

    def ask_position(self, token: int) -> None:
        """Confirm at once."""
        self._controller.on_read_confirmed(token, self.high_watermark)

    def resign(self, reason: str = "") -> None:
        """Fail: replay never stops here."""
        raise InvariantViolation(f"the controller resigns: {reason}")


def _no_checkpoint(snapshot_id: SnapshotId) -> list[bytes]:
    raise InvariantViolation(f"no checkpoint {snapshot_id}")


def _fail(message: str) -> None:
    raise InvariantViolation(message)
