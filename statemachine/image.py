"""``MetadataImage``: the cluster's metadata at exactly one position of the log.

Images are immutable and share structure: an image shares every unchanged part with its base.
Holding one costs nothing, and any thread may read it. Only ``statemachine.delta`` makes images.

Invariant: an image ends on a batch boundary and outside any metadata transaction.
"""

from __future__ import annotations

from dataclasses import field

from immutables import Map

from quorum.values import value
from statemachine.import_state import ImportState
from statemachine.records import Extra
from statemachine.sections.cluster import (
    BrokerRegistration,
    ClusterImage,
    ControllerRegistration,
)
from statemachine.sections.configs import ConfigsImage
from statemachine.sections.features import FeaturesImage
from statemachine.sections.map_delta import EMPTY_MAP
from statemachine.sections.positions import PositionsImage
from statemachine.sections.producers import ProducersImage
from statemachine.sections.security import SecurityImage
from statemachine.sections.topics import TopicsImage
from statemachine.sections.tracking import RecordKey


@value
class Provenance:
    """Log position of an image, and the import that its content came from.

    ``end_offset`` is exclusive. ``epoch`` and ``timestamp_ms`` (append time, milliseconds since
    1970) are those of the last batch below it; 0, 0 and -1 before the first. ``source`` is the
    position in the other cluster's metadata if the content was imported.
    """

    end_offset: int = 0
    epoch: int = 0
    timestamp_ms: int = -1
    source: ImportState | None = None


@value
class MetadataImage:
    """All metadata at ``provenance``; one attribute per section.

    The sections hold the lookups, which work alike on an ``ImageDelta``.
    """

    provenance: Provenance = field(default_factory=Provenance)
    features: FeaturesImage = field(default_factory=FeaturesImage)
    cluster: ClusterImage = field(default_factory=ClusterImage)
    topics: TopicsImage = field(default_factory=TopicsImage)
    configs: ConfigsImage = field(default_factory=ConfigsImage)
    security: SecurityImage = field(default_factory=SecurityImage)
    producers: ProducersImage = field(default_factory=ProducersImage)
    positions: PositionsImage = field(default_factory=PositionsImage)
    extras: Map[RecordKey, Extra] = EMPTY_MAP
    """Unknown fields of the records behind the image, by record key."""

    @property
    def source(self) -> ImportState | None:
        """Progress of the import of another cluster's metadata; None if none was imported."""
        return self.provenance.source

    @property
    def brokers(self) -> Map[int, BrokerRegistration]:
        """Broker registrations by id."""
        return self.cluster.brokers

    @property
    def controllers(self) -> Map[int, ControllerRegistration]:
        """Controller registrations by id."""
        return self.cluster.controllers

    def at(self, provenance: Provenance) -> MetadataImage:
        """Return the same content at another position."""
        # ``replace`` would do the same, but takes three times as long.
        return MetadataImage(
            provenance,
            self.features,
            self.cluster,
            self.topics,
            self.configs,
            self.security,
            self.producers,
            self.positions,
            self.extras,
        )

    def shares_content_with(self, other: MetadataImage) -> bool:
        """Whether every section is the same object; cheap. Others may still have equal content."""
        return (
            self.features is other.features
            and self.cluster is other.cluster
            and self.topics is other.topics
            and self.configs is other.configs
            and self.security is other.security
            and self.producers is other.producers
            and self.positions is other.positions
            and self.extras is other.extras
        )

    def has_content_of(self, other: MetadataImage) -> bool:
        """Whether both have equal content, whatever positions they represent."""
        return self.shares_content_with(other) or self == other.at(self.provenance)


EMPTY_IMAGE = MetadataImage()
"""The empty image at the beginning of the log."""
