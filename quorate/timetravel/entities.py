"""The entities of an image: one per record of its checkpoint, each with a kind and a name.

They come from the canonical dump, so nothing of an image is missing: not the types without a table
in the audit trail, and not the fields that this release does not know.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from quorum.types import Uuid, uuid_to_text
from statemachine import records
from statemachine.dump import dump_records
from statemachine.image import MetadataImage
from statemachine.payload import record_payload
from statemachine.records_schema import MetadataRecord
from statemachine.sections.configs import ResourceType
from statemachine.sections.tracking import RecordKey

DEFAULT_NAME = "(default)"
"""In names of entities: the default of all users, clients or brokers."""


class Entity(NamedTuple):
    """One entity of an image, with its whole state."""

    key: RecordKey
    kind: str
    """One of ``kinds.KINDS``."""
    parts: tuple[str, ...]
    """What its name consists of, such as topic and partition; unique within its kind."""
    record: MetadataRecord

    @property
    def name(self) -> str:
        """Its name on one line, such as ``orders-0``."""
        return ("-" if self.kind == "partition" else "/").join(self.parts)

    def fields(self, *, show_secrets: bool = False) -> dict[str, object]:
        """Return its fields under the names of Kafka's tools; credentials only if asked for."""
        version = records.RECORD_TYPES[self.record.API_KEY].version_max
        data = record_payload(self.record, version, show_secrets=show_secrets)["data"]
        assert isinstance(data, dict)  # noqa: S101 - the shape of every payload
        return data


Namer = Callable[[MetadataImage, Any], tuple[str, ...]]


def resource_name(resource_type: int, name: str) -> str:
    """Return ``topic:orders``, or ``broker:(default)`` for the default of all brokers."""
    try:
        kind = ResourceType(resource_type).name.lower()
    except ValueError:
        kind = str(resource_type)
    return f"{kind}:{name or DEFAULT_NAME}"


def entity_name(entity: tuple[records.QuotaEntity, ...]) -> str:
    """Return the parts of a quota's entity, sorted by type: ``client-id=c,user=u``."""
    parts = sorted(entity, key=records.entity_order)
    return ",".join(
        f"{part.entity_type}={DEFAULT_NAME if part.entity_name is None else part.entity_name}"
        for part in parts
    )


def topic_name(image: MetadataImage, topic_id: Uuid) -> str:
    """Return a topic's name; its id as text if the image has no such topic."""
    return image.topics.name_of(topic_id) or uuid_to_text(topic_id)


_TABLE: dict[type[MetadataRecord], tuple[str, Namer]] = {
    records.FeatureLevelRecord: ("feature", lambda _image, each: (each.name,)),
    records.ZkMigrationStateRecord: ("zk-migration", lambda _image, _each: ("state",)),
    records.RegisterControllerRecord: (
        "controller",
        lambda _image, each: (str(each.controller_id),),
    ),
    records.RegisterBrokerRecord: ("broker", lambda _image, each: (str(each.broker_id),)),
    records.TopicRecord: ("topic", lambda _image, each: (each.name,)),
    records.PartitionRecord: (
        "partition",
        lambda image, each: (topic_name(image, each.topic_id), str(each.partition_id)),
    ),
    records.ConfigRecord: (
        "config",
        lambda _image, each: (resource_name(each.resource_type, each.resource_name), each.name),
    ),
    records.ClientQuotaRecord: (
        "quota",
        lambda _image, each: (entity_name(each.entity), each.key),
    ),
    records.ProducerIdsRecord: ("producer-ids", lambda _image, _each: ("next",)),
    records.AccessControlEntryRecord: ("acl", lambda _image, each: (uuid_to_text(each.id),)),
    records.UserScramCredentialRecord: (
        "scram",
        lambda _image, each: (each.name, str(each.mechanism)),
    ),
    records.DelegationTokenRecord: ("token", lambda _image, each: (each.token_id,)),
    records.BrokerEpochRecord: ("broker-epoch", lambda _image, _each: ("highest",)),
    records.ProducerStateRecord: ("producer", lambda _image, each: (str(each.producer_id),)),
    records.TransactionalIdRecord: (
        "transactional-id",
        lambda _image, each: (each.transactional_id,),
    ),
    records.CommittedPositionRecord: ("position", lambda _image, each: (each.group,)),
    records.ImportStateRecord: ("import", lambda _image, _each: ("progress",)),
}

"""Types whose kind or name does not follow from their declaration."""


def _declared(kind: type[MetadataRecord]) -> tuple[str, Namer]:
    """Return kind and namer of a full-state type, from its name and its identity."""
    words = re.findall("[A-Z][a-z0-9]*", kind.__name__.removesuffix("Record"))
    return "-".join(words).lower(), lambda _image, each: tuple(map(_text, each.record_key()[1:]))


def _text(value: object) -> str:
    return uuid_to_text(value) if isinstance(value, bytes) else str(value)


_FULL_STATES = [
    each.record_class
    for each in records.RECORD_TYPES.values()
    if each.record_class.IDENTITY is not None
]
_NAMERS = _TABLE | {each: _declared(each) for each in _FULL_STATES if each not in _TABLE}


def entities(image: MetadataImage) -> Iterator[Entity]:
    """Yield every entity of the image, in the order of a checkpoint's records."""
    for record in dump_records(image):
        yield entity_of(image, record)


def entity_of(image: MetadataImage, record: MetadataRecord) -> Entity:
    """Return what a full-state record describes; ``image`` has the names of its topics."""
    kind, name = _NAMERS[type(record)]
    return Entity(record.record_key(), kind, name(image, record), record)
