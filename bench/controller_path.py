"""Measure the controller's cost per command: evaluate, encode, replay, append, promote, respond.

Runs the real controller over a log that is durable and committed at once, so only the controller's
own work is measured. Prints one JSON object, in microseconds of processor time per command.

    python -m bench.controller_path --commands 20000 --group 64
"""

from __future__ import annotations

import argparse
import cProfile
import json
import pstats
import random
import time
from collections.abc import Iterable, Mapping, Sequence

from bench.build_form import print_form
from quorate.controller.config import ControllerConfig
from quorate.controller.controller import Controller
from quorate.controller.requests import Answer, CommandAccess, RequestContext
from quorum.batch import BatchHeader
from quorum.core.contract.output import LeadershipChanged
from quorum.core.voters.voter_set import NO_VOTERS, VoterSet
from quorum.errors import ErrorCode
from quorum.types import NodeId, SnapshotId, VersionRange
from statemachine.commands import ConfigChange, IncrementalAlterConfigs, InitProducerId
from statemachine.machine import StateMachine
from statemachine.records import FeatureLevelRecord, MetadataRecord, TopicRecord

TOPICS = 100
WINDOW = 32


class InstantLog:
    """A log on which every append is durable and committed at once, and its clock."""

    is_leader = can_write = True
    epoch = 1
    leader_id = 1

    def __init__(self, controller: Controller) -> None:
        self._controller = controller
        self.node = self.controls = self
        self.log_end_offset = self.high_watermark = self.flushed_end_offset = 0
        self.newest_stamp_ms = 0
        self.time_ms = 0
        self._pending = b""
        controller.attach(self)

    def now_ms(self) -> int:
        return self.time_ms

    def wall_ms(self) -> int:
        return self.time_ms

    def voter_versions(self) -> Mapping[NodeId, Sequence[VersionRange] | None]:
        return {}

    def propose(self, batches: Sequence[bytes], headers: Sequence[BatchHeader]) -> int:
        self._pending += b"".join(batches)
        self.log_end_offset = headers[-1].end_offset
        return self.log_end_offset

    def voter_set_at(self, end_offset: int) -> VoterSet:
        """Return a set of the first incarnation of the log: nobody recovers here."""
        del end_offset
        return NO_VOTERS

    def read(self, token: int) -> None:
        self._controller.on_read_confirmed(token, self.high_watermark)

    def ask_position(self, token: int) -> None:
        self._controller.on_read_confirmed(token, self.high_watermark)

    def resign(self, reason: str) -> None:
        raise SystemExit(reason)

    def commit(self) -> None:
        """Deliver the appended batches as committed."""
        data, self._pending = self._pending, b""
        self.flushed_end_offset = self.high_watermark = self.log_end_offset
        if data:
            self._controller.on_committed(data, self.log_end_offset)


def measure(
    commands: int,
    group: int,
    *,
    access: CommandAccess | None = None,
    more: Sequence[MetadataRecord] = (),
) -> tuple[float, int]:
    """Return the processor seconds for config changes in groups, and how many succeeded.

    ``access`` decides about every command, on an image that holds the records ``more``.
    """
    bootstrap = (
        FeatureLevelRecord("metadata.version", 33),
        *(TopicRecord(f"topic-{i}", bytes(12) + i.to_bytes(4, "big")) for i in range(1, TOPICS)),
        *more,
    )
    controller = Controller(
        ControllerConfig(cluster_id="bench", idle_interval_ms=0),
        StateMachine(),
        rng=random.Random(1),
        open_checkpoint=no_checkpoint,
        bootstrap=bootstrap,
    )
    log = InstantLog(controller)
    controller.on_leadership(LeadershipChanged(1, 1, is_leader=True, can_write=True))
    controller.turn(log)
    log.commit()
    producers = _producers(controller, log, max(1, -(-group // WINDOW)))
    succeeded = 0

    def on_answer(answer: Answer) -> None:
        nonlocal succeeded
        succeeded += answer.code is ErrorCode.NONE

    work = [_command(number, producers) for number in range(commands)]
    for _, context in work:
        context.access = access
    started = time.process_time()
    for first in range(0, commands, group):
        for command, context in work[first : first + group]:
            controller.submit(command, context, on_answer)
        log.time_ms = first
        controller.turn(log)
        log.commit()
    return time.process_time() - started, succeeded


def no_checkpoint(snapshot_id: SnapshotId) -> Iterable[bytes]:
    raise SystemExit(f"unexpected read of checkpoint {snapshot_id}")


def _producers(controller: Controller, log: InstantLog, count: int) -> list[int]:
    found: list[int] = []

    def on_answer(answer: Answer) -> None:
        found.append(int(str(answer.result["producer_id"])))

    for _ in range(count):
        controller.submit(InitProducerId(), RequestContext(), on_answer)
    controller.turn(log)
    log.commit()
    return found


def _command(number: int, producers: list[int]) -> tuple[IncrementalAlterConfigs, RequestContext]:
    lane, sequence = number % len(producers), number // len(producers)
    value = f"{number:0100d}"
    return (
        IncrementalAlterConfigs(
            2, f"topic-{number % (TOPICS - 1) + 1}", (ConfigChange("quorate.note", 0, value),)
        ),
        RequestContext(
            "User:bench",
            "client-1",
            f"request-{number}",
            "load",
            "",
            producers[lane],
            0,
            sequence,
            max(0, sequence - WINDOW + 1),
        ),
    )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--commands", type=int, default=20_000)
    parser.add_argument("--group", type=int, default=64)
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    print_form()
    if options.profile:
        profile = cProfile.Profile()
        profile.runcall(measure, options.commands, options.group)
        pstats.Stats(profile).sort_stats("tottime").print_stats(25)
        return
    seconds, succeeded = measure(options.commands, options.group)
    print(
        json.dumps(
            {
                "commands": options.commands,
                "group": options.group,
                "succeeded": succeeded,
                "microseconds_per_command": round(seconds / options.commands * 1e6, 2),
            }
        )
    )


if __name__ == "__main__":
    main()
