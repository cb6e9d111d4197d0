"""``MetadataImage``: the cluster's metadata at exactly one position of the log.

Immutable and sharing structure: an image keeps what it was built from alive only where nothing
changed, holding one costs nothing, and any thread may read it. Images are made by
``statemachine.delta`` alone.

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
from statemachine.sections.producers import ProducersImage
from statemachine.sections.security import SecurityImage
from statemachine.sections.topics import TopicsImage
from statemachine.sections.tracking import RecordKey


@value
class Provenance:
    """The position an image represents, and where its content came from.

    ``end_offset`` is exclusive, ``epoch`` and ``timestamp_ms`` (append time, milliseconds since
    1970) are those of the last batch below it; 0, 0 and -1 before the first. ``source`` is the
    position in another cluster's metadata, for content that was imported.
    """

    end_offset: int = 0
    epoch: int = 0
    timestamp_ms: int = -1
    source: ImportState | None = None


@value
class MetadataImage:
    """All metadata at ``provenance``; one attribute per section.

    The lookups live on the sections and work alike on an ``ImageDelta``.
    """

    provenance: Provenance = field(default_factory=Provenance)
    features: FeaturesImage = field(default_factory=FeaturesImage)
    cluster: ClusterImage = field(default_factory=ClusterImage)
    topics: TopicsImage = field(default_factory=TopicsImage)
    configs: ConfigsImage = field(default_factory=ConfigsImage)
    security: SecurityImage = field(default_factory=SecurityImage)
    producers: ProducersImage = field(default_factory=ProducersImage)
    extras: Map[RecordKey, Extra] = EMPTY_MAP
    """Unknown fields of the records behind the image, by record key."""

    @property
    def source(self) -> ImportState | None:
        """How far another cluster's metadata was imported; None when none was."""
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
        """The same content at another position."""
        # As ``replace`` would do it, which takes three times as long.
        return MetadataImage(
            provenance,
            self.features,
            self.cluster,
            self.topics,
            self.configs,
            self.security,
            self.producers,
            self.extras,
        )

    def shares_content_with(self, other: MetadataImage) -> bool:
        """Whether every section is the very same object; cheap, and never wrong when true."""
        return (
            self.features is other.features
            and self.cluster is other.cluster
            and self.topics is other.topics
            and self.configs is other.configs
            and self.security is other.security
            and self.producers is other.producers
            and self.extras is other.extras
        )

    def has_content_of(self, other: MetadataImage) -> bool:
        """Whether both say the same, whatever positions they represent."""
        return self.shares_content_with(other) or self == other.at(self.provenance)


EMPTY_IMAGE = MetadataImage()
"""Nothing, at the beginning of the log."""
