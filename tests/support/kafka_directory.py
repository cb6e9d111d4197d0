"""Metadata directories as a Kafka controller writes them: the real sample, and invented ones."""

from __future__ import annotations

import shutil
from pathlib import Path

import zstandard

from quorum.batch import encode_batch
from quorum.control import encode_control_batch
from quorum.control_records import LeaderChange
from quorum.log.filesystem import OsFileSystem
from quorum.types import SnapshotId
from snapshot.writer import write_checkpoint
from statemachine.codec import encode_kafka
from statemachine.records import MetadataRecord
from tests.support.compressed_batch import compressed

SAMPLE = Path(__file__).parents[1] / "data" / "kafka-kraft-log-whole"
PARTITION = "__cluster_metadata-0"
SEGMENT = "00000000000000000000.log"
SAMPLE_END_OFFSET = 4_929
SAMPLE_BATCHES = 4_814
SAMPLE_CLUSTER_ID = "q1w2e3r4t5y6u7i8o9p0"


def whole_sample(folder: Path) -> Path:
    """The real controller's directory, unpacked below ``folder``."""
    target = folder / "kafka-kraft-log"
    shutil.copytree(SAMPLE, target)
    packed = target / PARTITION / f"{SEGMENT}.zst"
    data = zstandard.ZstdDecompressor().decompress(packed.read_bytes())
    (target / PARTITION / SEGMENT).write_bytes(data)
    packed.unlink()
    return target


class KafkaDirectory:
    """A directory in the making: batches go to one segment, which may begin at any offset."""

    def __init__(
        self, folder: Path, *, start: int = 0, cluster_id: str = "any text", voters: int = 1
    ) -> None:
        self.path = folder
        self.partition = folder / PARTITION
        self.partition.mkdir(parents=True)
        (folder / "meta.properties").write_text(f"node.id=1\nversion=1\ncluster.id={cluster_id}\n")
        self.segment = self.partition / f"{start:020d}.log"
        self.segment.touch()
        self.end = start
        nodes = tuple(range(1, voters + 1))
        self._append(
            encode_control_batch(
                [LeaderChange(1, nodes, nodes)], base_offset=start, epoch=1, timestamp=1
            ),
            1,
        )

    def batch(self, *records: MetadataRecord, is_compressed: bool = False) -> tuple[int, int]:
        """Append one batch; return its half-open range of offsets."""
        begin = self.end
        values = [encode_kafka(record) for record in records]
        batch = encode_batch(values, base_offset=begin, epoch=1, timestamp=begin)
        self._append(compressed(batch) if is_compressed else batch, len(records))
        return begin, self.end

    def checkpoint(self, end_offset: int, *records: MetadataRecord) -> Path:
        """A checkpoint with that end offset."""
        snapshot_id = SnapshotId(end_offset, 1)
        write_checkpoint(
            OsFileSystem(),
            self.partition,
            snapshot_id,
            values=[encode_kafka(record) for record in records],
            last_contained_log_timestamp=5,
        )
        return self.partition / f"{end_offset:020d}-{1:010d}.checkpoint"

    def _append(self, batch: bytes, count: int) -> None:
        with self.segment.open("ab") as file:
            file.write(batch)
        self.end += count
