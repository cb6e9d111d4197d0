"""A node's data directory written with the product's own writer, for tests of the audit trail."""

from __future__ import annotations

import shutil
from collections.abc import Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

from audit.plan import ReadPlan
from audit.reader import read_table
from audit.schema import key_columns, own_columns
from audit.typed_rows import state_effects
from quorum.batch import encode_batch
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange, Origin, Voters
from quorum.log.config import LogConfig
from quorum.log.filesystem import OsFileSystem
from quorum.log.identity import MetaProperties, write_identity
from quorum.log.layout import partition_directory
from quorum.log.recovery import open_log
from quorum.types import OffsetAndEpoch, ReplicaKey, Voter
from snapshot.writer import write_checkpoint
from statemachine.codec import encode_record
from statemachine.dump import dump_values
from statemachine.image import MetadataImage
from statemachine.machine import StateMachine
from statemachine.records import MetadataRecord
from tests.support.record_strategies import World

TIME_0 = 1_700_000_000_000
CLUSTER_ID = "audit-test"


class AuditLog:
    """Appends commands to a real log, and keeps the image after every batch."""

    def __init__(
        self, home: Path, *, segment_bytes: int = 1 << 20, cluster_id: str = CLUSTER_ID
    ) -> None:
        self.home = home
        self.partition = partition_directory(home)
        self.fs = OsFileSystem()
        home.mkdir(parents=True, exist_ok=True)
        write_identity(self.fs, home, MetaProperties(cluster_id, 1, bytes(range(1, 17))))
        self.config = LogConfig(segment_bytes=segment_bytes)
        self.log, _ = open_log(self.fs, self.partition, self.config)
        self.machine = StateMachine()
        self.epoch = 0
        self.images: dict[int, MetadataImage] = {0: self.machine.image}

    @property
    def end(self) -> int:
        return self.log.end.offset

    def elect(
        self,
        epoch: int,
        voters: Sequence[int] = (1, 2, 3),
        *,
        leader: int = 1,
        origin: Origin | None = None,
    ) -> int:
        """Append the first record of a new epoch."""
        self.epoch = epoch
        change = LeaderChange(leader, tuple(voters), tuple(voters), origin=origin)
        return self._append(
            encode_control_batch(
                [change], base_offset=self.end, epoch=epoch, timestamp=TIME_0 + self.end
            )
        )

    def voters(self, *ids: int, origin: Origin | None = None) -> int:
        """Append a voters record that names these nodes."""
        record = Voters(
            tuple(Voter(ReplicaKey(node_id, bytes([node_id]) * 16)) for node_id in ids),
            origin=origin,
        )
        return self._append(
            encode_control_batch(
                [record], base_offset=self.end, epoch=self.epoch, timestamp=TIME_0 + self.end
            )
        )

    def command(self, *records: MetadataRecord, **headers: str) -> int:
        """Append one command as one batch; return its end offset."""
        named = [(name.replace("_", "-"), text.encode()) for name, text in headers.items()]
        return self._append(
            encode_batch(
                [encode_record(record) for record in records],
                base_offset=self.end,
                epoch=self.epoch,
                timestamp=TIME_0 + self.end,
                headers=named,
            )
        )

    def world(self, seed: int, steps: int, *, reuses_names: bool = False) -> World:
        """Append random commands that are consistent with the earlier ones."""
        world = World(seed, reuses_names=reuses_names)
        self.more(world, steps)
        return world

    def more(self, world: World, steps: int) -> None:
        for number in range(steps):
            self.command(*world.step(), principal=f"User:{number % 3}", reason=f"step {number}")

    def _append(self, data: bytes) -> int:
        base = self.end
        image = self.machine.apply(data)
        end = self.machine.end_offset
        self.log.append(data, base_offset=base, end_offset=end)
        self.images[end] = image
        return end

    def commit(self, offset: int | None = None) -> int:
        """Flush the log and store its end as the high watermark."""
        self.log.flush()
        end = self.end if offset is None else offset
        self.log.store_high_watermark(end)
        return end

    def checkpoint(self) -> OffsetAndEpoch:
        """Write a checkpoint of the whole log."""
        self.log.flush()
        provenance = self.machine.image.provenance
        snapshot_id = OffsetAndEpoch(provenance.end_offset, provenance.epoch)
        write_checkpoint(
            self.fs,
            self.partition,
            snapshot_id,
            values=dump_values(self.machine.image),
            last_contained_log_timestamp=provenance.timestamp_ms,
            log_digest=self.log.digest_at(snapshot_id.offset),
        )
        return snapshot_id

    def copy(self, to: Path) -> Path:
        """Copy the present directory to another place."""
        self.log.flush()
        shutil.copytree(self.home, to)
        return to

    def fork(self, home: Path, offset: int, epoch: int) -> AuditLog:
        """Cut the log at ``offset`` and continue in a newer epoch, as an unsafe recovery does."""
        other = AuditLog(home)
        while (data := self.log.read(other.end, 1, end_offset=offset)) and other.end < offset:
            other._append(data)
        other.elect(epoch)
        return other

    def image_at(self, offset: int) -> MetadataImage:
        """The image as of an offset."""
        return self.images[max(end for end in self.images if end <= offset)]


def file_ranges(plan: ReadPlan) -> list[tuple[int, int]]:
    """Return the ranges of offsets between the ends of segment files and of the baseline."""
    cuts = {segment.end_offset for segment in plan.segments}
    if plan.baseline is not None:
        cuts.add(plan.baseline.end_offset)
    return list(pairwise(sorted(cuts | {0, plan.end_offset})))


def table_rows(plan: ReadPlan, table: str, *bounds: int, **options: Any) -> list[dict[str, Any]]:
    """Return the rows of a table as dictionaries."""
    return [
        row for batch in read_table(plan, table, *bounds, **options) for row in batch.to_pylist()
    ]


def last_states(
    rows: Sequence[dict[str, Any]], table: str, as_of: int, reset: int = 0
) -> list[dict[str, Any]]:
    """Return the state that rows add up to: the last row of each key, without deletions."""
    names = [column.name for column in own_columns(table)]
    keys = key_columns(table)
    found: dict[tuple[Any, ...], dict[str, Any]] = {}
    for row in rows:
        if row["effective_offset"] > as_of or row["effective_offset"] < reset:
            continue
        key = tuple(row[name] for name in keys)
        found.pop(key, None)
        if row["change"] == "set":
            found[key] = {name: row[name] for name in names}
    return ordered(list(found.values()), table)


def expected_states(image: MetadataImage, table: str) -> list[dict[str, Any]]:
    """Return the state machine's content in the same form."""
    names = [column.name for column in own_columns(table)]
    found = [
        {
            name: list(value) if isinstance(value, tuple) else value
            for name, value in zip(names, effect.values, strict=True)
        }
        for effect in state_effects(image, table)
    ]
    return ordered(found, table)


def ordered(rows: list[dict[str, Any]], table: str) -> list[dict[str, Any]]:
    keys = key_columns(table)
    if table == "configs":
        rows = [{**row, "old_value": None} for row in rows]
    return sorted(rows, key=lambda row: [str(row[name]) for name in keys])
