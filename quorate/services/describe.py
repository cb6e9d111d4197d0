"""Queries over an image: topics, configurations, brokers, features. Pure functions."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Final

from quorate.client.limits import FRAMING_BYTES, MESSAGE_BYTES_MAX
from quorate.features import KRAFT_VERSION_MAX
from quorate.services.sorted_names import SortedNames
from quorum.types import METADATA_TOPIC, Uuid
from quorum.v1 import admin_pb2, commands_pb2, common_pb2, metadata_pb2
from statemachine.commands import FeatureRange, ResourceType
from statemachine.config_catalog import CATALOG, METADATA_TOPIC_CONFIGS
from statemachine.feature_levels import KRAFT_VERSION
from statemachine.image import MetadataImage
from statemachine.redaction import is_secret_config
from statemachine.sections.acl_index import AllowedNames
from statemachine.sections.name_changes import NameChanges
from statemachine.sections.partitions import PartitionState

LISTED_TOPICS_MAX = 10_000
"""Maximum topics in one listing; the client continues after the last name."""
_INSERTED_MAX: Final = 1024
"""Changed names that are put in or taken out one by one, about 2 µs each."""
DESCRIBED_PARTITIONS_MAX = 40_000
"""Maximum partitions in one answer, so that it fits in a message."""

DESCRIBED_CONFIG_BYTES_MAX = MESSAGE_BYTES_MAX - FRAMING_BYTES
"""Maximum bytes of configurations in one answer, so that it fits in a message."""

_DEFAULT: Final = metadata_pb2.CONFIG_SOURCE_DEFAULT
_CLUSTER: Final = metadata_pb2.CONFIG_SOURCE_CLUSTER
_RESOURCE: Final = metadata_pb2.CONFIG_SOURCE_RESOURCE


class TopicNames:
    """Sorted topic names. Those that were created or deleted are put in, or taken out."""

    def __init__(self) -> None:
        self._changes = NameChanges()
        self._names = SortedNames()

    def after(self, image: MetadataImage, name: str, limit: int) -> tuple[Sequence[str], bool]:
        """Return up to ``limit`` names greater than ``name``, and whether more follow."""
        found = self._sorted(image).after(name)
        return list(islice(found, limit)), next(found, None) is not None

    def among(self, image: MetadataImage, name: str, allowed: AllowedNames) -> Iterator[str]:
        """Yield the names greater than ``name`` among those allowed, ascending.

        Costs nothing for the topics that are not among them.
        """
        names = self._sorted(image)
        ids = image.topics.ids
        # Ranges lie in each other or apart, and of two that begin alike the prefix has the other.
        starts = [(each, 1) for each in allowed.literals if each in ids]
        starts += [(each, 0) for each in allowed.prefixes]
        last = name
        for start, is_literal in sorted(starts):
            if is_literal:
                if start > last:
                    last = start
                    yield start
                continue
            for found in names.after(last) if start <= last else names.since(start):
                if not found.startswith(start):
                    break
                last = found
                yield found

    def _sorted(self, image: MetadataImage) -> SortedNames:
        ids, changes = image.topics.ids, image.topics.name_changes
        if self._changes is not changes:
            changed = changes.since(self._changes)
            if changed is None:
                self._names = SortedNames(ids)
            elif len(changed) <= _INSERTED_MAX:
                for name in changed:
                    if name in ids:
                        self._names.add(name)
                    else:
                        self._names.discard(name)
            else:
                # The sort finds one long sorted run, and merges the rest into it.
                names = [name for name in self._names if name not in changed]
                names += [name for name in changed if name in ids]
                self._names = SortedNames(names)
            self._changes = changes
        return self._names


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
        directories=state.directories,
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


def add_configs(
    image: MetadataImage, found: metadata_pb2.ResourceConfigs, *, include_defaults: bool
) -> None:
    """Add the configuration of ``found.resource``, ascending by name, or the error."""
    kind, name = int(found.resource.type), found.resource.name
    is_topic = kind == ResourceType.TOPIC
    is_log = is_topic and name == METADATA_TOPIC
    if is_topic and not is_log and image.topics.id_of(name) is None:
        found.error_code = common_pb2.ERROR_CODE_UNKNOWN_TOPIC_OR_PARTITION
        return
    own = image.configs.of(kind, name)
    entries = _inherited(image, kind, name, include_defaults=include_defaults)
    if is_log:
        entries.update((key, (value, _RESOURCE)) for key, value in METADATA_TOPIC_CONFIGS.items())
    for key, value in own.items():
        entries[key] = value, _RESOURCE
    for key in sorted(entries):
        value, source = entries[key]
        entry = found.entries.add(name=key, source=source)
        if is_secret_config(key):
            entry.is_sensitive = True
        else:
            entry.value = value
        if is_log and key in METADATA_TOPIC_CONFIGS and key not in own:
            entry.is_read_only = True


def _inherited(
    image: MetadataImage, kind: int, name: str, *, include_defaults: bool
) -> dict[str, tuple[str, metadata_pb2.ConfigSource]]:
    """Return values that a resource has not itself: defaults, and those of the whole cluster."""
    entries: dict[str, tuple[str, metadata_pb2.ConfigSource]] = {}
    if include_defaults:
        for key in CATALOG.get(kind, {}).values():
            if key.default is not None:
                entries[key.name] = key.default, _DEFAULT
    is_broker = kind == ResourceType.BROKER and name != ""
    is_log = kind == ResourceType.TOPIC and name == METADATA_TOPIC
    if (include_defaults or is_broker) and not is_log:
        for key_name, value in image.configs.of(ResourceType.BROKER, "").items():
            if is_broker or key_name in entries:
                entries[key_name] = value, _CLUSTER
    return entries


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
            log_dirs=broker.log_dirs,
            cordoned_log_dirs=broker.cordoned_log_dirs or (),
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
