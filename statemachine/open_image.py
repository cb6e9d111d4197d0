"""``OpenImage``: an image opened for changing, section by section.

It holds the sections, the position and the change tracking. ``statemachine.replay`` defines the
effect of each record; ``statemachine.delta`` applies batches. A section is the base image's own
until it is first opened for changing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from statemachine.image import MetadataImage, Provenance
from statemachine.import_state import IMPORT_KEY, ImportState
from statemachine.sections.cluster import ClusterDelta, ClusterImage
from statemachine.sections.configs import ConfigsDelta, ConfigsImage
from statemachine.sections.features import FeaturesDelta, FeaturesImage
from statemachine.sections.positions import PositionsDelta, PositionsImage
from statemachine.sections.producers import ProducersDelta, ProducersImage
from statemachine.sections.security import SecurityDelta, SecurityImage
from statemachine.sections.topics import TopicsImage
from statemachine.sections.topics_delta import TopicsDelta
from statemachine.sections.tracking import ChangeTracker, RecordKey

HEADER_PRINCIPAL = "principal"
"""Record header with the principal that caused a batch, in UTF-8."""


class BatchPosition(Protocol):
    """The fields of a batch header that replay needs; ``quorum.batch.BatchHeader`` has them."""

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


@dataclass(frozen=True, slots=True)
class OpenTransaction:
    """The state before an open metadata transaction, which an abort restores."""

    name: str | None
    before: MetadataImage
    touched: frozenset[RecordKey]


class OpenImage:
    """Sections over one base image. Owned by one thread."""

    __slots__ = (
        "base",
        "cluster",
        "configs",
        "end_offset",
        "epoch",
        "features",
        "finished",
        "headers",
        "positions",
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
        self.positions: PositionsImage | PositionsDelta = base.positions
        self.tracker = ChangeTracker(base.extras)
        self.transaction: OpenTransaction | None = None
        self.finished: MetadataImage | None = None
        """What ``finish`` returned; None before."""
        self.headers: Sequence[tuple[str, bytes | None]] = ()
        """Record headers of the batch that is being replayed."""
        self.end_offset = base.provenance.end_offset
        self.epoch = base.provenance.epoch
        self.timestamp_ms = base.provenance.timestamp_ms
        self.source: ImportState | None = base.provenance.source
        """Progress of the import of another cluster's metadata; None if none was imported."""

    @property
    def changed_keys(self) -> frozenset[RecordKey]:
        """Checkpoint records that existed before and were changed or deleted (630.4)."""
        return frozenset(self.tracker.touched)

    @property
    def provenance(self) -> Provenance:
        """The position behind the last batch replayed."""
        return Provenance(self.end_offset, self.epoch, self.timestamp_ms, self.source)

    def principal(self) -> str:
        """Return the principal of the batch under replay; "" if its headers name none."""
        for name, value in self.headers:
            if name == HEADER_PRINCIPAL:
                return (value or b"").decode("utf-8", "replace")
        return ""

    def view(self) -> MetadataImage:
        """Return the image as of now, behind the last batch; the delta stays usable.

        It includes the effects of an open transaction, so use it to evaluate commands only.
        """
        features, cluster, topics = self.features, self.cluster, self.topics
        configs, security, producers = self.configs, self.security, self.producers
        positions = self.positions
        return MetadataImage(
            self.provenance,
            features.settle() if isinstance(features, FeaturesDelta) else features,
            cluster.settle() if isinstance(cluster, ClusterDelta) else cluster,
            topics.settle() if isinstance(topics, TopicsDelta) else topics,
            configs.settle() if isinstance(configs, ConfigsDelta) else configs,
            security.settle() if isinstance(security, SecurityDelta) else security,
            producers.settle() if isinstance(producers, ProducersDelta) else producers,
            positions.settle() if isinstance(positions, PositionsDelta) else positions,
            self.tracker.settled_extras(),
        )

    def take_content(self, image: MetadataImage) -> None:
        """Replace all sections by those of ``image``; position and change tracking stay."""
        self.features = image.features
        self.cluster = image.cluster
        self.topics = image.topics
        self.configs = image.configs
        self.security = image.security
        self.producers = image.producers
        self.positions = image.positions

    def set_source(self, source: ImportState) -> None:
        """Set the progress of the import of another cluster's metadata."""
        if self.source is not None and self.source != source:
            self.tracker.modified(IMPORT_KEY)
        self.source = source

    def open_features(self) -> FeaturesDelta:
        """Return the features section, opened for changing."""
        section = self.features
        if not isinstance(section, FeaturesDelta):
            section = self.features = FeaturesDelta(section, self.tracker)
        return section

    def open_cluster(self) -> ClusterDelta:
        """Return the cluster section, opened for changing."""
        section = self.cluster
        if not isinstance(section, ClusterDelta):
            section = self.cluster = ClusterDelta(section, self.tracker)
        return section

    def open_topics(self) -> TopicsDelta:
        """Return the topics section, opened for changing."""
        section = self.topics
        if not isinstance(section, TopicsDelta):
            section = self.topics = TopicsDelta(section, self.tracker)
        return section

    def open_configs(self) -> ConfigsDelta:
        """Return the configurations section, opened for changing."""
        section = self.configs
        if not isinstance(section, ConfigsDelta):
            section = self.configs = ConfigsDelta(section, self.tracker)
        return section

    def open_security(self) -> SecurityDelta:
        """Return the security section, opened for changing."""
        section = self.security
        if not isinstance(section, SecurityDelta):
            section = self.security = SecurityDelta(section, self.tracker)
        return section

    def open_producers(self) -> ProducersDelta:
        """Return the producers section, opened for changing."""
        section = self.producers
        if not isinstance(section, ProducersDelta):
            section = self.producers = ProducersDelta(section, self.tracker)
        return section

    def open_positions(self) -> PositionsDelta:
        """Return the committed positions, opened for changing."""
        section = self.positions
        if not isinstance(section, PositionsDelta):
            section = self.positions = PositionsDelta(section, self.tracker)
        return section
