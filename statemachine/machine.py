"""``StateMachine``: a replica's committed records, applied; one image after another.

Belongs here: which bytes become part of the image, in which order, and when the result may be
seen. What a record does is ``statemachine.replay``'s, when to write a checkpoint the snapshot
room's work.

Invariants:
    1. ``image`` holds committed records only (630.1), ends on a batch boundary and outside any
       metadata transaction.
    2. Equal positions mean equal images on every replica.
"""

from __future__ import annotations

from collections.abc import Iterable

from quorum.batch import BatchHeader, scan_batches
from quorum.errors import (
    CorruptBatchError,
    QuorumUsageError,
    RecordCodecError,
    UnknownRecordError,
)
from quorum.types import SnapshotId
from statemachine.batches import decode_batch, opens_transaction
from statemachine.changes import ChangeCounter
from statemachine.codec import DecodeRecord, decode_record
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.loading import load_checkpoint
from statemachine.sections.tracking import ChangeTracker


class StateMachine:
    """Applies committed batches and checkpoints. One per replica, owned by its event loop."""

    def __init__(
        self, image: MetadataImage = EMPTY_IMAGE, *, decode: DecodeRecord = decode_record
    ) -> None:
        """Begin at ``image``; ``decode`` knows the record types of a release, this one's."""
        self.image = image
        """Committed and applied; replaced, never changed."""
        self.changes = ChangeCounter()
        """What has changed since the latest checkpoint (630.4)."""
        self._decode = decode
        self._open: ImageDelta | None = None

    @property
    def end_offset(self) -> int:
        """Where the next committed batch begins.

        Behind the image's end only while a metadata transaction is open.
        """
        return self.image.provenance.end_offset if self._open is None else self._open.end_offset

    @property
    def open_transaction(self) -> str | None:
        """The name of the metadata transaction that is open, "" for one without; or None."""
        if self._open is None or self._open.transaction is None:
            return None
        return self._open.transaction.name or ""

    def apply(self, data: bytes) -> MetadataImage:
        """Apply committed whole batches and return the newest image.

        Batches that were applied before are passed over, so that data may overlap. While a
        metadata transaction is open the image stays where it was before the batch that began it.

        Raises:
            UnknownRecordError: A record is of a type or version this release does not know.
                Everything before its batch has been applied; the batch has not.
            RecordCodecError: Likewise for a value that is no record.
            CorruptBatchError: Likewise for a damaged batch; when its damage shows without
                looking at records, nothing of ``data`` was applied.
            ReplayError: A record contradicts the image, so one of the two is corrupt; nothing
                of ``data`` was applied.
            QuorumUsageError: The data leaves a gap; nothing was applied.
        """
        applied = self.end_offset
        headers = [header for header in scan_batches(data) if header.end_offset > applied]
        if not headers:
            return self.image
        if headers[0].base_offset != applied:
            raise QuorumUsageError(
                f"committed data begins at {headers[0].base_offset}, applied up to {applied}"
            )
        run = _Run(self.image, self._open, self._decode)
        try:
            for header in headers:
                run.apply(data, header)
        except (UnknownRecordError, RecordCodecError, CorruptBatchError):
            self._keep(run)
            raise
        self._keep(run)
        return self.image

    def load(
        self, snapshot_id: SnapshotId, data: Iterable[bytes], *, verify_digest: bool = True
    ) -> MetadataImage:
        """Replace the image by a checkpoint's content, and return it.

        ``data`` yields the checkpoint's batches in order, whole ones in each piece. With
        ``verify_digest`` the state digest of the footer, if there is one, must be right.

        Raises:
            SnapshotCorruptError: The content is not what header and footer promise.
            CorruptBatchError, RecordCodecError, UnknownRecordError, ReplayError: As ``apply``.
                In every case the former image stays in force.
        """
        loaded = load_checkpoint(
            snapshot_id, data, verify_digest=verify_digest, decode=self._decode
        )
        self.image = loaded.image
        self._open = None
        self.changes.start_over(loaded.record_count)
        return self.image

    def speculate(self) -> ImageDelta:
        """A delta over everything applied, for evaluating what is not committed yet.

        It includes the effects of a metadata transaction that is open.
        """
        return ImageDelta(self.image) if self._open is None else self._open.fork()

    def adopt(self, delta: ImageDelta) -> MetadataImage:
        """Take over what the leader replayed ahead of its commit, instead of replaying again.

        ``delta`` is finished, all of it is committed, and it was built on this image's content.

        Raises:
            QuorumUsageError: It was not finished, was built on something else, or would go
                back; nothing has changed.
        """
        image = delta.finished
        if image is None:
            raise QuorumUsageError("only a finished delta can be adopted")
        if self._open is not None and self._open.transaction is not None:
            raise QuorumUsageError("a metadata transaction is open: replay instead of adopting")
        if not delta.base.shares_content_with(self.image):
            raise QuorumUsageError(
                f"delta over {delta.base.provenance} does not fit the image at "
                f"{self.image.provenance}"
            )
        if image.provenance.end_offset < self.image.provenance.end_offset:
            raise QuorumUsageError(
                f"delta ends at {image.provenance.end_offset}, the image is at "
                f"{self.image.provenance.end_offset}"
            )
        self.changes.absorb(delta.tracker.touched, delta.tracker.empty_records)
        self.image = image
        return image

    def _keep(self, run: _Run) -> None:
        """Publish what a run has completed; keep what waits for its transaction's end."""
        self._open = run.close()
        for each in run.completed:
            self.changes.absorb(each.touched, each.empty_records)
        self.image = run.image


class _Run:
    """One call of ``apply``: images it completes, and a delta that may stay open."""

    def __init__(
        self, image: MetadataImage, waiting: ImageDelta | None, decode: DecodeRecord
    ) -> None:
        self.image = image
        self._decode = decode
        self.completed: list[ChangeTracker] = []
        self._delta = ImageDelta(image) if waiting is None else waiting.fork()

    def apply(self, data: bytes, header: BatchHeader) -> None:
        """Replay one batch. A batch that fails to decode leaves no trace."""
        if header.is_control:
            self._delta.skip_batch(header)
            return
        batch = decode_batch(data, header, decode=self._decode)
        if self._delta.transaction is None and opens_transaction(batch.records):
            self._publish()
            if self._delta.finished is not None:
                self._delta = ImageDelta(self.image)
        self._delta.replay_batch(header, batch.records, batch.headers)

    def close(self) -> ImageDelta | None:
        """Complete the image, or return the delta that a transaction holds open."""
        if self._delta.transaction is not None:
            return self._delta
        self._publish()
        return None

    def _publish(self) -> None:
        if self._delta.end_offset != self.image.provenance.end_offset:
            self.image = self._delta.finish()
            self.completed.append(self._delta.tracker)
