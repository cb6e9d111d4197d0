"""Queries over an image: topics, configurations, brokers, features. Pure functions."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence

from immutables import Map

from quorate.client.limits import FRAMING_BYTES, MESSAGE_BYTES_MAX
from quorate.features import KRAFT_VERSION_MAX
from quorum.types import METADATA_TOPIC, Uuid
from quorum.v1 import admin_pb2, commands_pb2, common_pb2, metadata_pb2
from statemachine.commands import FeatureRange, ResourceType
from statemachine.config_catalog import CATALOG, METADATA_TOPIC_CONFIGS
from statemachine.feature_levels import KRAFT_VERSION
from statemachine.image import MetadataImage
from statemachine.sections.partitions import PartitionState

LISTED_TOPICS_MAX = 10_000
"""Maximum topics in one listing; the client continues after the last name."""
DESCRIBED_PARTITIONS_MAX = 40_000
"""Maximum partitions in one answer, so that it fits in a message."""

DESCRIBED_CONFIG_BYTES_MAX = MESSAGE_BYTES_MAX - FRAMING_BYTES
"""Maximum bytes of configurations in one answer, so that it fits in a message."""

_Source = metadata_pb2.ConfigSource


class TopicNames:
    """Sorted topic names, sorted again only if topics were created or deleted."""

    def __init__(self) -> None:
        self._of: Map[str, Uuid] | None = None
        self._names: Sequence[str] = ()

    def after(self, image: MetadataImage, name: str, limit: int) -> tuple[Sequence[str], bool]:
        """Return up to ``limit`` names greater than ``name``, and whether more follow."""
        if self._of is not image.topics.ids:
            self._of = image.topics.ids
            self._names = sorted(image.topics.ids)
        start = bisect_right(self._names, name) if name else 0
        return self._names[start : start + limit], start + limit < len(self._names)


def listed_topics(
    image: MetadataImage, names: Iterable[str]
) -> Iterable[metadata_pb2.TopicListing]:
    """Yield name, id and size of each topic."""
    for name in names:
        topic_id = image.topics.ids[name]
        yield metadata_pb2.TopicListing(
            name=name,
            topic_id=topic_id,
            partition_count=len(image.topics.partitions_of(topic_id)),
        )


def topic_by_name(image: MetadataImage, name: str) -> metadata_pb2.TopicDescription:
    """Return the topic of that name, or an error in its place."""
    topic_id = image.topics.id_of(name)
    if topic_id is None:
        return metadata_pb2.TopicDescription(
            name=name, error_code=common_pb2.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
        )
    return _topic(image, name, topic_id)


def topic_by_id(image: MetadataImage, topic_id: Uuid) -> metadata_pb2.TopicDescription:
    """Return the topic with that id, or an error in its place."""
    name = image.topics.name_of(topic_id)
    if name is None:
        return metadata_pb2.TopicDescription(
            topic_id=topic_id, error_code=common_pb2.ERROR_CODE_UNKNOWN_TOPIC_ID
        )
    return _topic(image, name, topic_id)


def _topic(image: MetadataImage, name: str, topic_id: Uuid) -> metadata_pb2.TopicDescription:
    partitions = image.topics.partitions_of(topic_id)
    return metadata_pb2.TopicDescription(
        name=name,
        topic_id=topic_id,
        partitions=[_partition(image, index, partitions[index]) for index in sorted(partitions)],
    )


def _partition(
    image: MetadataImage, index: int, state: PartitionState
) -> metadata_pb2.PartitionDescription:
    return metadata_pb2.PartitionDescription(
        partition=index,
        leader_id=state.leader,
        leader_epoch=state.leader_epoch,
        partition_epoch=state.partition_epoch,
        replicas=state.replicas,
        isr=state.isr,
        offline_replicas=offline_replicas(image, state),
        adding_replicas=state.adding,
        removing_replicas=state.removing,
        eligible_leader_replicas=state.elr,
        leader_recovery_state=state.leader_recovery_state,
    )


def offline_replicas(image: MetadataImage, state: PartitionState) -> list[int]:
    """Return the replicas that cannot serve: broker unknown, fenced, in controlled shutdown, or
    directory lost (320.8).
    """
    offline = []
    for replica in state.replicas:
        broker = image.cluster.broker(replica)
        if (
            broker is None
            or not broker.is_active
            or not broker.has_online(state.directory(replica))
        ):
            offline.append(replica)
    return offline


def resource_configs(
    image: MetadataImage, resource: metadata_pb2.ConfigResource, *, include_defaults: bool
) -> metadata_pb2.ResourceConfigs:
    """Return the configuration of one resource, ascending by name."""
    found = metadata_pb2.ResourceConfigs(resource=resource)
    entries: dict[str, metadata_pb2.ConfigEntry] = {}
    if include_defaults:
        for key in CATALOG.get(resource.type, {}).values():
            if key.default is not None:
                entries[key.name] = _entry(key.name, key.default, _Source.CONFIG_SOURCE_DEFAULT)
    is_topic = int(resource.type) == ResourceType.TOPIC
    is_broker = int(resource.type) == ResourceType.BROKER and resource.name != ""
    if is_topic and resource.name == METADATA_TOPIC:
        for name, value in METADATA_TOPIC_CONFIGS.items():
            entries[name] = _entry(name, value, _Source.CONFIG_SOURCE_RESOURCE)
            entries[name].is_read_only = True
    elif is_topic and image.topics.id_of(resource.name) is None:
        found.error_code = common_pb2.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
        return found
    elif include_defaults or is_broker:
        for name, value in image.configs.of(ResourceType.BROKER, "").items():
            if is_broker or name in entries:
                entries[name] = _entry(name, value, _Source.CONFIG_SOURCE_CLUSTER)
    for name, value in image.configs.of(resource.type, resource.name).items():
        entries[name] = _entry(name, value, _Source.CONFIG_SOURCE_RESOURCE)
    found.entries.extend(entries[name] for name in sorted(entries))
    return found


def _entry(name: str, value: str, source: metadata_pb2.ConfigSource) -> metadata_pb2.ConfigEntry:
    return metadata_pb2.ConfigEntry(name=name, value=value, source=source)


def brokers(image: MetadataImage) -> Iterable[admin_pb2.BrokerDescription]:
    """Yield every registered broker, ascending by id."""
    for broker_id in sorted(image.brokers):
        broker = image.brokers[broker_id]
        yield admin_pb2.BrokerDescription(
            broker_id=broker_id,
            broker_epoch=broker.epoch,
            incarnation_id=broker.incarnation_id,
            rack=broker.rack,
            is_fenced=broker.fenced,
            is_in_controlled_shutdown=broker.in_controlled_shutdown,
            listeners=[
                commands_pb2.BrokerListener(
                    name=endpoint.name,
                    host=endpoint.host,
                    port=endpoint.port,
                    security_protocol=endpoint.security_protocol,
                )
                for endpoint in broker.endpoints
            ],
            features=[
                commands_pb2.SupportedFeature(
                    name=feature.name,
                    min_version=feature.min_supported_version,
                    max_version=feature.max_supported_version,
                )
                for feature in broker.features
            ],
        )


def features(
    image: MetadataImage, supported: Sequence[FeatureRange]
) -> Iterable[admin_pb2.FeatureDescription]:
    """Yield every feature that is supported here or finalised, ascending by name."""
    ranges = {feature.name: feature for feature in supported}
    # The kraft.version is in a control record of the quorum, not in the image.
    levels = {**image.features.levels, KRAFT_VERSION: KRAFT_VERSION_MAX}
    for name in sorted({*ranges, *levels}):
        known = ranges.get(name)
        yield admin_pb2.FeatureDescription(
            name=name,
            supported_min=known.min_level if known else 0,
            supported_max=known.max_level if known else 0,
            finalized_level=levels.get(name, 0),
        )
