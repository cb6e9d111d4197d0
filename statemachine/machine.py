"""``StateMachine``: applies a replica's committed records and publishes one image after another.

It decides which bytes become part of the image, in which order, and when readers see the result.
``statemachine.replay`` defines the effect of each record; ``snapshot/`` writes checkpoints.

Invariants:
    1. ``image`` holds committed records only (630.1), ends on a batch boundary and outside any
       metadata transaction.
    2. Equal positions mean equal images on every replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from quorum.batch import CONTROL_BIT, BatchHeader, VerifiedBatches, scan_batches
from quorum.errors import (
    CorruptBatchError,
    QuorumUsageError,
    RecordCodecError,
    UnknownRecordError,
)
from quorum.types import SnapshotId
from statemachine.batches import decode_steps, opens_transaction
from statemachine.changes import ChangeCounter
from statemachine.codec import DecodeRecord, decode_record
from statemachine.delta import ImageDelta
from statemachine.image import EMPTY_IMAGE, MetadataImage
from statemachine.loading import load_checkpoint
from statemachine.partition_runs import RunReader
from statemachine.sections.tracking import ChangeTracker

_KNOWN_MAX = 1 << 12
"""States of partitions that replay remembers by the bytes of their records."""


class StateMachine:
    """Applies committed batches and checkpoints. One per replica, owned by its event loop."""

    def __init__(self, *, decode: DecodeRecord = decode_record) -> None:
        """Start empty; ``decode`` defines the known record types, default this release."""
        self.image: MetadataImage = EMPTY_IMAGE
        """Committed and applied; replaced, never changed."""
        self.changes = ChangeCounter()
        """What has changed since the latest checkpoint (630.4)."""
        self._decode = decode
        self._runs = RunReader(decode, known_max=_KNOWN_MAX, hits_min=0)
        self._open: ImageDelta | None = None

    @property
    def end_offset(self) -> int:
        """Offset at which the next committed batch must begin.

        Greater than the image's end offset only while a metadata transaction is open.
        """
        return self.image.provenance.end_offset if self._open is None else self._open.end_offset

    @property
    def open_transaction(self) -> str | None:
        """Name of the open metadata transaction, "" if it has none; None if none is open."""
        if self._open is None or self._open.transaction is None:
            return None
        return self._open.transaction.name or ""

    def apply(self, data: bytes, verified: Sequence[VerifiedBatches] = ()) -> MetadataImage:
        """Apply committed whole batches and return the newest image.

        Batches that were applied before are skipped, so ``data`` may overlap them. While a
        metadata transaction is open, the image stays in front of the batch that began it.

        ``verified`` are all batches of ``data``, if they were read and verified before. Else
        ``data`` is read and verified here.

        Raises:
            UnknownRecordError: A record is of a type or version this release does not know.
                Everything before its batch has been applied; the batch has not.
            RecordCodecError: Likewise for a value that is no record.
            CorruptBatchError: Likewise for a damaged batch. If the damage shows in the batch
                framing, nothing of ``data`` was applied.
            ReplayError: A record contradicts the image, so one of the two is corrupt; nothing
                of ``data`` was applied.
            QuorumUsageError: The data leaves a gap; nothing was applied.
        """
        applied = self.end_offset
        batches = verified or (VerifiedBatches(data, scan_batches(data)),)
        first = _first_above(batches, applied)
        if first is None:
            return self.image
        if first.base_offset != applied:
            raise QuorumUsageError(
                f"committed data begins at {first.base_offset}, applied up to {applied}"
            )
        run = _Run(self.image, self._open, self._decode, self._runs)
        try:
            for part in batches:
                for header in part.headers:
                    if header.end_offset > applied:
                        run.apply(part.data, header)
        except (UnknownRecordError, RecordCodecError, CorruptBatchError):
            self._keep(run)
            raise
        self._keep(run)
        return self.image

    def load(
        self, snapshot_id: SnapshotId, data: Iterable[bytes], *, verify_digest: bool = True
    ) -> MetadataImage:
        """Replace the image by a checkpoint's content, and return it.

        ``data`` yields the checkpoint's batches in order; each item holds whole batches. With
        ``verify_digest`` the state digest of the footer, if there is one, is checked.

        Raises:
            SnapshotCorruptError: The content contradicts the header or the footer.
            CorruptBatchError, RecordCodecError, UnknownRecordError, ReplayError: As ``apply``.
                After every error the former image stays in force.
        """
        loaded = load_checkpoint(
            snapshot_id, data, verify_digest=verify_digest, decode=self._decode
        )
        self.image = loaded.image
        self._open = None
        self.changes.start_over(loaded.record_count)
        return self.image

    def speculate(self) -> ImageDelta:
        """Return a delta over everything applied, to evaluate commands that are not committed.

        It includes the effects of a metadata transaction that is open.
        """
        return ImageDelta(self.image) if self._open is None else self._open.fork()

    def adopt(self, delta: ImageDelta) -> MetadataImage:
        """Promote the leader's finished delta to the committed image instead of replaying again.

        ``delta`` must be finished, wholly committed, and built on this image's content.

        Raises:
            QuorumUsageError: The delta is not finished, has another base, or ends before the
                image; nothing has changed.
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
        """Publish the completed images of a run; keep the delta of an open transaction."""
        self._open = run.close()
        for each in run.completed:
            self.changes.absorb(each.touched, each.empty_records)
        self.image = run.image


def _first_above(batches: Iterable[VerifiedBatches], offset: int) -> BatchHeader | None:
    """Return the first batch with records at or above ``offset``; None if there is none."""
    for part in batches:
        for header in part.headers:
            if header.end_offset > offset:
                return header
    return None


class _Run:
    """One call of ``apply``: the images it completes, and a delta that may stay open."""

    def __init__(
        self,
        image: MetadataImage,
        waiting: ImageDelta | None,
        decode: DecodeRecord,
        runs: RunReader,
    ) -> None:
        self.image = image
        self._decode = decode
        self._runs = runs
        self.completed: list[ChangeTracker] = []
        self._delta = ImageDelta(image) if waiting is None else waiting.fork()

    def apply(self, data: bytes, header: BatchHeader) -> None:
        """Replay one batch. A batch that fails to decode leaves no trace."""
        if header.attributes & CONTROL_BIT:
            self._delta.skip_batch(header)
            return
        steps, headers = decode_steps(data, header, decode=self._decode, runs=self._runs)
        if self._delta.transaction is None and opens_transaction(steps):
            self._publish()
            if self._delta.finished is not None:
                self._delta = ImageDelta(self.image)
        self._delta.replay_batch(header, steps, headers)

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
