"""The record of one entity of an image, by the key under which replay reports its changes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from statemachine import records
from statemachine.dump import broker_record, controller_record
from statemachine.image import MetadataImage
from statemachine.records_schema import MetadataRecord
from statemachine.sections import partitions
from statemachine.sections.tracking import RecordKey


def _feature(image: MetadataImage, key: RecordKey) -> MetadataRecord | None:
    level = image.features.levels.get(key[1])
    return None if level is None else records.FeatureLevelRecord(key[1], level)


def _controller(image: MetadataImage, key: RecordKey) -> MetadataRecord | None:
    found = image.controllers.get(key[1])
    return None if found is None else controller_record(found)


def _broker(image: MetadataImage, key: RecordKey) -> MetadataRecord | None:
    found = image.brokers.get(key[1])
    return None if found is None else broker_record(found)


def _topic(image: MetadataImage, key: RecordKey) -> MetadataRecord | None:
    name = image.topics.name_of(key[1])
    return None if name is None else records.TopicRecord(name, key[1])


def _partition(image: MetadataImage, key: RecordKey) -> MetadataRecord | None:
    found = image.topics.partition(key[1], key[2])
    return None if found is None else partitions.record_of(key[1], key[2], found)


def _config(image: MetadataImage, key: RecordKey) -> MetadataRecord | None:
    value = image.configs.resources.get((key[1], key[2]), {}).get(key[3])
    return None if value is None else records.ConfigRecord(key[1], key[2], key[3], value)


def _quota(image: MetadataImage, key: RecordKey) -> MetadataRecord | None:
    value = image.security.quotas.get(key[1], {}).get(key[2])
    return None if value is None else records.ClientQuotaRecord(key[1], key[2], value)


def _acl(image: MetadataImage, key: RecordKey) -> MetadataRecord | None:
    return image.security.acls.get(key[1])


def _scram(image: MetadataImage, key: RecordKey) -> MetadataRecord | None:
    return image.security.scram.get((key[1], key[2]))


def _token(image: MetadataImage, key: RecordKey) -> MetadataRecord | None:
    return image.security.tokens.get(key[1])


def _transactional_id(image: MetadataImage, key: RecordKey) -> MetadataRecord | None:
    return image.producers.transactional_ids.get(key[1])


SHOWN: Final[dict[int, Callable[[MetadataImage, RecordKey], Any]]] = {
    records.FeatureLevelRecord.API_KEY: _feature,
    records.RegisterControllerRecord.API_KEY: _controller,
    records.RegisterBrokerRecord.API_KEY: _broker,
    records.TopicRecord.API_KEY: _topic,
    records.PartitionRecord.API_KEY: _partition,
    records.ConfigRecord.API_KEY: _config,
    records.ClientQuotaRecord.API_KEY: _quota,
    records.AccessControlEntryRecord.API_KEY: _acl,
    records.UserScramCredentialRecord.API_KEY: _scram,
    records.DelegationTokenRecord.API_KEY: _token,
    records.TransactionalIdRecord.API_KEY: _transactional_id,
}
"""How to find a record, by the first part of its key. The others count commands and positions:
they change with nearly every command, and the console keeps no history of them."""


def record_at(image: MetadataImage, key: RecordKey) -> MetadataRecord | None:
    """Return the record under ``key``; None if the image has none, or the console shows none."""
    find = SHOWN.get(key[0])
    found: MetadataRecord | None = None if find is None else find(image, key)
    if found is not None and image.extras:
        extra = image.extras.get(key)
        if extra is not None:
            found.extra = extra
    return found
