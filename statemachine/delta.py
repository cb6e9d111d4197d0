"""``ImageDelta``: changes on top of an image, applied batch by batch; single use.

The leader builds one over its newest image to evaluate commands against uncommitted state. Every
replica builds one to apply committed batches. The section attributes (``features``, ``cluster``,
``topics``, ``configs``, ``security``, ``producers``, ``positions``) answer the same lookups as
those of ``MetadataImage``: they are the base's sections until a record first changes one.

Metadata transactions (KIP-868): while one is open, ``view`` includes its effects, because later
records build on them, but ``finish`` refuses. An abort restores the state at its begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quorum.errors import QuorumUsageError, ReplayError
from statemachine.image import MetadataImage, Provenance
from statemachine.imports import after_batch
from statemachine.open_image import BatchPosition, OpenImage
from statemachine.partition_runs import PartitionRun, Step, runs_of
from statemachine.partition_updates import PartitionUpdates
from statemachine.producers import apply_command
from statemachine.records import MetadataRecord, PartitionRecord
from statemachine.replay import REPLAY


class ImageDelta(OpenImage):
    """Changes over one base image. Owned by one thread; unusable after it raised."""

    __slots__ = ()

    def replay_batch(
        self,
        header: BatchPosition,
        records: Sequence[Step | PartitionUpdates],
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Apply one data batch and the producer state in its header.

        The batch must begin at ``end_offset``. ``headers`` are the record headers of its
        first record. Partitions that follow one another in a list are applied at once, and so are
        updates, which get the states; a sequence of another type is iterated, with the state after
        each record visible in between.

        Raises:
            ReplayError: A record contradicts the state. The delta must be dropped.
            QuorumUsageError: The batch begins elsewhere; nothing has changed.
        """
        if header.base_offset != self.end_offset:
            raise self._gap(header)
        self.timestamp_ms = header.max_timestamp
        self.headers = headers
        position = 0
        step: Step | PartitionUpdates | None = None
        try:
            for step in runs_of(records) if type(records) is list and records[1:] else records:
                if isinstance(step, PartitionRun):
                    self.open_topics().replay_partitions(step.topic_id, step.states)
                    position += len(step.states)
                elif isinstance(step, PartitionUpdates):
                    step.replay(self.open_topics())
                    position += len(step.states)
                else:
                    REPLAY[type(step)](self, step)
                    position += 1
            step = None
            if header.producer_id >= 0:
                apply_command(self.open_producers(), header, headers)
            if self.source is not None and not self.source.is_finished:
                self.set_source(after_batch(self.source, headers))
        except ReplayError as error:
            if isinstance(step, PartitionUpdates):
                position += len(step.states)
            raise ReplayError(
                f"{_name_of(step)}: {error.cause}",
                offset=header.base_offset + position,
            ) from error
        self.headers = ()
        self.end_offset = header.end_offset
        self.epoch = header.epoch

    def skip_batch(self, header: BatchPosition) -> None:
        """Advance past a control batch, which changes the position only.

        Raises:
            QuorumUsageError: The batch does not begin at ``end_offset``.
        """
        if header.base_offset != self.end_offset:
            raise self._gap(header)
        self.timestamp_ms = header.max_timestamp
        self.end_offset = header.end_offset
        self.epoch = header.epoch

    def replay(self, record: MetadataRecord) -> None:
        """Apply one record outside any batch, for loading a checkpoint.

        Raises:
            ReplayError: The record contradicts the state. The delta must be dropped.
        """
        REPLAY[type(record)](self, record)

    def finish(self, provenance: Provenance | None = None) -> MetadataImage:
        """Return the resulting image; the delta cannot be used afterwards.

        The image is at ``provenance``, by default the position behind the last batch replayed.
        Its import source follows from the records in either case.

        Raises:
            QuorumUsageError: The delta was finished before, or a transaction is open.
        """
        if self.finished is not None:
            raise QuorumUsageError("this delta was finished before")
        if self.transaction is not None:
            raise QuorumUsageError(f"a metadata transaction is open: {self.transaction.name!r}")
        image = self.view()
        if provenance is not None:
            image = image.at(replace(provenance, source=self.source))
        self.finished = image
        return self.finished

    def fork(self) -> ImageDelta:
        """Return an independent delta in the same state, open transaction included."""
        copy = ImageDelta(self.base)
        copy.take_content(self.view())
        copy.tracker.revert(self.tracker.touched, self.tracker.settled_extras())
        copy.tracker.empty_records = self.tracker.empty_records
        copy.transaction = self.transaction
        copy.end_offset, copy.epoch = self.end_offset, self.epoch
        copy.timestamp_ms = self.timestamp_ms
        copy.source = self.source
        return copy

    def _gap(self, header: BatchPosition) -> QuorumUsageError:
        return QuorumUsageError(
            f"batch begins at {header.base_offset}, the image ends at {self.end_offset}"
        )


def _name_of(step: Step | PartitionUpdates | None) -> str:
    if step is None:
        return "batch header"
    if isinstance(step, PartitionUpdates):
        return type(step.records[len(step.states)]).__name__
    return (PartitionRecord if isinstance(step, PartitionRun) else type(step)).__name__
