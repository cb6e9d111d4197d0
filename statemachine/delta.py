"""``ImageDelta``: changes on top of an image, applied batch by batch; single use.

The leader builds one over its newest image to judge commands against what is not yet committed;
every replica builds one to apply committed batches. The section attributes (``features``,
``cluster``, ``topics``, ``configs``, ``security``, ``producers``) answer the same lookups as
those of ``MetadataImage``: they are the base's sections until a record first changes one.

Metadata transactions (KIP-868): while one is open, ``view`` shows its effects, because later
records build on them, but ``finish`` refuses. An abort returns to the state at its begin.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from quorum.errors import QuorumUsageError, ReplayError
from statemachine.image import MetadataImage, Provenance
from statemachine.imports import IMPORT_KEY, ImportState, after_batch
from statemachine.producers import apply_command
from statemachine.records import MetadataRecord
from statemachine.replay import REPLAY
from statemachine.sections.cluster import ClusterDelta, ClusterImage
from statemachine.sections.configs import ConfigsDelta, ConfigsImage
from statemachine.sections.features import FeaturesDelta, FeaturesImage
from statemachine.sections.producers import ProducersDelta, ProducersImage
from statemachine.sections.security import SecurityDelta, SecurityImage
from statemachine.sections.topics import TopicsDelta, TopicsImage
from statemachine.sections.tracking import ChangeTracker, RecordKey
from statemachine.transactions import OpenTransaction


class BatchPosition(Protocol):
    """What replay needs to know of a batch; ``quorum.batch.BatchHeader`` has all of it."""

    @property
    def base_offset(self) -> int:
        """Offset of the first record."""

    @property
    def end_offset(self) -> int:
        """Offset behind the last record."""

    @property
    def epoch(self) -> int:
        """Epoch of the leader that wrote it."""

    @property
    def max_timestamp(self) -> int:
        """Append time, milliseconds since 1970."""

    @property
    def producer_id(self) -> int:
        """The writer's producer id, -1 for none."""

    @property
    def producer_epoch(self) -> int:
        """The epoch of that producer id."""

    @property
    def base_sequence(self) -> int:
        """The command's sequence number."""


class ImageDelta:
    """Changes over one base image. Owned by one thread; spoiled once it raised."""

    __slots__ = (
        "base",
        "cluster",
        "configs",
        "end_offset",
        "epoch",
        "features",
        "finished",
        "producers",
        "security",
        "source",
        "timestamp_ms",
        "topics",
        "tracker",
        "transaction",
    )

    def __init__(self, base: MetadataImage) -> None:
        self.base = base
        self.features: FeaturesImage | FeaturesDelta = base.features
        self.cluster: ClusterImage | ClusterDelta = base.cluster
        self.topics: TopicsImage | TopicsDelta = base.topics
        self.configs: ConfigsImage | ConfigsDelta = base.configs
        self.security: SecurityImage | SecurityDelta = base.security
        self.producers: ProducersImage | ProducersDelta = base.producers
        self.tracker = ChangeTracker(base.extras)
        self.transaction: OpenTransaction | None = None
        self.finished: MetadataImage | None = None
        """What ``finish`` returned; None before."""
        self.end_offset = base.provenance.end_offset
        self.epoch = base.provenance.epoch
        self.timestamp_ms = base.provenance.timestamp_ms
        self.source: ImportState | None = base.provenance.source
        """How far another cluster's metadata was imported; None when none was."""

    @property
    def changed_keys(self) -> frozenset[RecordKey]:
        """Checkpoint records that existed before and were changed or deleted (630.4)."""
        return frozenset(self.tracker.touched)

    @property
    def provenance(self) -> Provenance:
        """The position behind the last batch replayed."""
        return Provenance(self.end_offset, self.epoch, self.timestamp_ms, self.source)

    def replay_batch(
        self,
        header: BatchPosition,
        records: Sequence[MetadataRecord],
        headers: Sequence[tuple[str, bytes | None]] = (),
    ) -> None:
        """Apply one data batch and what its header says about its producer.

        The batch must begin where the delta ends. ``headers`` are the record headers of its
        first record.

        Raises:
            ReplayError: A record contradicts the state. The delta must be dropped.
            QuorumUsageError: The batch does not follow; nothing has changed.
        """
        self._expect(header)
        self.timestamp_ms = header.max_timestamp
        position = 0
        try:
            for record in records:
                REPLAY[type(record)](self, record)
                position += 1
            if header.producer_id >= 0:
                apply_command(self.open_producers(), header, headers)
            if self.source is not None and not self.source.is_finished:
                self.set_source(after_batch(self.source, headers))
        except ReplayError as error:
            raise ReplayError(
                f"{_name_at(records, position)}: {error.cause}",
                offset=header.base_offset + position,
            ) from error
        self.end_offset = header.end_offset
        self.epoch = header.epoch

    def skip_batch(self, header: BatchPosition) -> None:
        """Move past a control batch, which changes the position only.

        Raises:
            QuorumUsageError: The batch does not follow.
        """
        self._expect(header)
        self.timestamp_ms = header.max_timestamp
        self.end_offset = header.end_offset
        self.epoch = header.epoch

    def replay(self, record: MetadataRecord) -> None:
        """Apply one record outside any batch, as when loading a checkpoint.

        Raises:
            ReplayError: The record contradicts the state. The delta must be dropped.
        """
        REPLAY[type(record)](self, record)

    def view(self) -> MetadataImage:
        """The image as of now, at the position behind the last batch; the delta stays usable.

        With a transaction open its effects show, so the result is for judging commands only.
        """
        features, cluster, topics = self.features, self.cluster, self.topics
        configs, security, producers = self.configs, self.security, self.producers
        return MetadataImage(
            self.provenance,
            features.settle() if isinstance(features, FeaturesDelta) else features,
            cluster.settle() if isinstance(cluster, ClusterDelta) else cluster,
            topics.settle() if isinstance(topics, TopicsDelta) else topics,
            configs.settle() if isinstance(configs, ConfigsDelta) else configs,
            security.settle() if isinstance(security, SecurityDelta) else security,
            producers.settle() if isinstance(producers, ProducersDelta) else producers,
            self.tracker.extras.settle(),
        )

    def finish(self, provenance: Provenance | None = None) -> MetadataImage:
        """The resulting image; the delta is used up.

        It represents ``provenance``, by default the position behind the last batch replayed.
        Where its content was imported from follows from the records in either case.

        Raises:
            QuorumUsageError: It was finished before, or a transaction is open.
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
        """An independent delta in the same state, open transaction included."""
        copy = ImageDelta(self.base)
        copy.take_content(self.view())
        copy.tracker.revert(self.tracker.touched, self.tracker.extras.settle())
        copy.transaction = self.transaction
        copy.end_offset, copy.epoch = self.end_offset, self.epoch
        copy.timestamp_ms = self.timestamp_ms
        copy.source = self.source
        return copy

    def take_content(self, image: MetadataImage) -> None:
        """Replace all sections by those of an image; position and counting stay."""
        self.features = image.features
        self.cluster = image.cluster
        self.topics = image.topics
        self.configs = image.configs
        self.security = image.security
        self.producers = image.producers

    def set_source(self, source: ImportState) -> None:
        """The import of another cluster's metadata has come so far."""
        if self.source is not None and self.source != source:
            self.tracker.modified(IMPORT_KEY)
        self.source = source

    def _expect(self, header: BatchPosition) -> None:
        if header.base_offset != self.end_offset:
            raise QuorumUsageError(
                f"batch begins at {header.base_offset}, the image ends at {self.end_offset}"
            )

    def open_features(self) -> FeaturesDelta:
        """The features section for changing."""
        section = self.features
        if not isinstance(section, FeaturesDelta):
            section = self.features = FeaturesDelta(section, self.tracker)
        return section

    def open_cluster(self) -> ClusterDelta:
        """The cluster section for changing."""
        section = self.cluster
        if not isinstance(section, ClusterDelta):
            section = self.cluster = ClusterDelta(section, self.tracker)
        return section

    def open_topics(self) -> TopicsDelta:
        """The topics section for changing."""
        section = self.topics
        if not isinstance(section, TopicsDelta):
            section = self.topics = TopicsDelta(section, self.tracker)
        return section

    def open_configs(self) -> ConfigsDelta:
        """The configurations section for changing."""
        section = self.configs
        if not isinstance(section, ConfigsDelta):
            section = self.configs = ConfigsDelta(section, self.tracker)
        return section

    def open_security(self) -> SecurityDelta:
        """The security section for changing."""
        section = self.security
        if not isinstance(section, SecurityDelta):
            section = self.security = SecurityDelta(section, self.tracker)
        return section

    def open_producers(self) -> ProducersDelta:
        """The producers section for changing."""
        section = self.producers
        if not isinstance(section, ProducersDelta):
            section = self.producers = ProducersDelta(section, self.tracker)
        return section


def _name_at(records: Sequence[MetadataRecord], position: int) -> str:
    return type(records[position]).__name__ if position < len(records) else "batch header"
