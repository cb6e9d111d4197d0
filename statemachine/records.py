"""The table of metadata record types, and the version in which each is written.

Record classes live by family in the ``records_*`` modules, and all can be imported from here. The
table contains every record class of these modules. ``statemachine.codec`` encodes them,
``statemachine.replay`` applies them.

See: docs/reference/record-types.md (Metadata records); ADR 2.
"""

from __future__ import annotations

from statemachine import (
    records_cluster,
    records_own,
    records_positions,
    records_security,
    records_topics,
)
from statemachine.records_cluster import *
from statemachine.records_own import *
from statemachine.records_positions import *
from statemachine.records_schema import *
from statemachine.records_schema import MetadataRecord, RecordType, describe
from statemachine.records_security import *
from statemachine.records_topics import *

_FAMILIES = (records_cluster, records_topics, records_security, records_own, records_positions)
_RECORD_CLASSES = {
    found.API_KEY: found
    for family in _FAMILIES
    for found in vars(family).values()
    if isinstance(found, type) and issubclass(found, MetadataRecord) and found.API_KEY >= 0
}

RECORD_TYPES: dict[int, RecordType] = {
    key: describe(record_class) for key, record_class in sorted(_RECORD_CLASSES.items())
}
"""Every record type of this release by its API key. Keys 6, 13 and 16 are retired."""

METADATA_VERSION = "metadata.version"
ELR_VERSION = "eligible.leader.replicas.version"


def record_version(record: MetadataRecord, metadata_version: int) -> int:
    """Return the version to write ``record`` in at a metadata.version level (0: none finalised).

    It follows the level, and is raised where the content needs a field of a later version, so
    that a checkpoint loses no content of the image.
    """
    if not record.VERSION_MAX:
        return 0
    version = 0
    for level, step in record.VERSION_STEPS:
        if metadata_version >= level:
            version = step
    return lowest_version(record, version)


def lowest_version(record: MetadataRecord, at_least: int = 0) -> int:
    """Return the lowest version, ``at_least`` or above, that carries all the record's content."""
    if at_least >= record.VERSION_MAX:
        return at_least
    version = at_least
    for spec in RECORD_TYPES[record.API_KEY].fields:
        if spec.since > version and getattr(record, spec.name) != spec.default:
            version = spec.since
    return version
