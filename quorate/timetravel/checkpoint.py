"""The checkpoint of a past state, as the node itself would have written it there.

A checkpoint depends on the log alone (ADR 6): equal positions give equal bytes on all replicas. So
a stopped node's directory is enough to write one, also for a position at which no node did.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from audit.errors import AuditError
from audit.plan import ReadPlan
from audit.replay import batches_of, oldest_state
from audit.scan import Scan, load_state
from audit.segment_file import FoundBatch
from quorum.batch import iterate_records, record_values, scan_batches
from quorum.control import decode_control
from quorum.control_records import KRaftVersion, Voters
from quorum.core.voters.voter_set import NO_VOTERS, VoterSet
from quorum.digest import EMPTY_LOG_DIGEST
from quorum.types import BOOTSTRAP_SNAPSHOT_ID, SnapshotId
from snapshot.format import CheckpointHead
from snapshot.generator import CheckpointRequest
from snapshot.naming import file_path
from snapshot.reader import CheckpointReader
from statemachine.codec import is_kafka_value
from statemachine.dump import DigestedValues
from statemachine.image import EMPTY_IMAGE


def checkpoint_at(plan: ReadPlan, partition: Path, offset: int) -> CheckpointRequest:
    """Return the checkpoint of the state as of ``offset``.

    It ends at ``offset`` or, if that is inside a batch or a metadata transaction, in front of it.
    ``partition`` is the directory that was planned; its bootstrap checkpoint has the first voters.

    Raises:
        AuditError: The source does not show that state, or does not name the voters.
        LogDamagedError, CorruptBatchError, SnapshotCorruptError: A file is damaged.
        StorageError: A file cannot be read.
    """
    lowest = oldest_state(plan)
    if not lowest <= offset <= plan.end_offset:
        raise AuditError(
            f"{plan.source}: the state as of offset {offset} is not known; those from {lowest} to "
            f"{plan.end_offset} are"
        )
    found = _replay(plan, partition, offset)
    image = found.scan.image()
    provenance = image.provenance
    values = DigestedValues(image, kafka=bool(found.uses_kafka_codec))
    voters = found.voters
    return CheckpointRequest(
        SnapshotId(provenance.end_offset, provenance.epoch),
        values,
        provenance.timestamp_ms,
        log_digest=found.digest,
        kraft_version=1 if voters.voters else found.kraft_version,
        voters=voters.voters,
        removed=voters.removed,
        incarnation=voters.incarnation,
        state_digest=values.digest,
    )


@dataclass(slots=True)
class _Replayed:
    """Everything that a checkpoint has beside the image; as of the image's position."""

    scan: Scan
    digest: bytes
    voters: VoterSet = NO_VOTERS
    kraft_version: int = 0
    uses_kafka_codec: bool | None = None
    _waiting: list[KRaftVersion | Voters] = field(default_factory=list)
    """Records behind the image's position, which a transaction holds back."""

    def take_head(self, head: CheckpointHead) -> None:
        """Take the voters of a checkpoint, unless a newer one had some."""
        if not self.kraft_version and (head.voters or head.kraft_version):
            self.kraft_version = head.kraft_version
            self.voters = VoterSet(head.voters, head.removed, head.incarnation)

    def take(self, batch: FoundBatch) -> None:
        """Replay a batch."""
        self.scan.take(batch, observe=False)
        if batch.header.is_control:
            for record in iterate_records(batch.data, batch.header, path=batch.path):
                control = decode_control(record, path=batch.path, position=batch.position)
                if isinstance(control, KRaftVersion | Voters):
                    self._waiting.append(control)
        elif self.uses_kafka_codec is None:
            self.uses_kafka_codec = _is_kafka(batch.data[slice(*_span(batch))])
        if not self.scan.is_settled:
            return
        self.digest = batch.digest
        for control in self._waiting:
            if isinstance(control, Voters):
                self.voters = VoterSet(control.voters, control.removed, control.incarnation)
            else:
                self.kraft_version = control.version
        self._waiting.clear()


def _span(batch: FoundBatch) -> tuple[int, int]:
    return batch.header.position, batch.header.end_position


def _replay(plan: ReadPlan, partition: Path, offset: int) -> _Replayed:
    start = plan.replay_start(offset)
    found = _Replayed(Scan(EMPTY_IMAGE), EMPTY_LOG_DIGEST)
    begin = 0
    if start is not None:
        reader = CheckpointReader(Path(start.path))
        found.scan, begin = Scan(load_state(start)), start.end_offset
        head = reader.head()
        found.digest = head.log_digest
        found.take_head(head)
        found.uses_kafka_codec = _codec_of(reader)
    bootstrap = file_path(partition, BOOTSTRAP_SNAPSHOT_ID)
    if bootstrap.exists():
        reader = CheckpointReader(bootstrap)
        found.take_head(reader.head())
        if found.uses_kafka_codec is None:
            found.uses_kafka_codec = _codec_of(reader)
    for batch in batches_of(plan, begin, offset):
        if batch.header.end_offset <= offset:
            found.take(batch)
    return found


def _codec_of(reader: CheckpointReader) -> bool | None:
    for data in reader.batches():
        found = _is_kafka(data)
        if found is not None:
            return found
    return None


def _is_kafka(data: bytes) -> bool | None:
    """Whether the first record of these batches is in Kafka's codec; None without a record."""
    for header in scan_batches(data, verify_crc=False):
        if not header.is_control:
            for value in filter(None, record_values(data, header)):
                return is_kafka_value(bytes(value))
    return None
