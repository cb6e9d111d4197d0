"""Replay of the import of another cluster's metadata, whose progress is part of the provenance.

An import copies the source's records batch by batch. Each batch is atomic and holds the same
records; record headers of its first record name the range of the source. The first step removes
the feature levels that formatting finalised, so that all content comes from the source.

Invariants:
    1. Positions only move forward, and each batch begins where the one before ended: the same
       range of the source is never applied twice and none is left out.
    2. The progress is not part of the state digest: the content equals that of a replay of the
       source.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from quorum.errors import ReplayError
from statemachine.image import MetadataImage
from statemachine.import_state import IMPORT_KEY, ImportState, SourcePosition, position_of
from statemachine.open_image import OpenImage
from statemachine.records import (
    BeginImportRecord,
    FeatureLevelRecord,
    ImportStateRecord,
    ZkMigrationStateRecord,
)

HEADER_SOURCE_OFFSET = "source-offset"
"""Record header: start of the batch's range in the source, as ``SourcePosition.text``."""

HEADER_SOURCE_NEXT = "source-next"
"""Record header: end of that range (exclusive), where the next one begins; same form."""


def is_blank(image: MetadataImage) -> bool:
    """Whether the image holds nothing but the feature levels that formatting finalised."""
    security, producers = image.security, image.producers
    return not (
        image.brokers
        or image.controllers
        or image.cluster.highest_broker_epoch >= 0
        or image.topics.ids
        or image.configs.resources
        or security.quotas
        or security.acls
        or security.scram
        or security.tokens
        or producers.next_id
        or producers.states
        or producers.transactional_ids
        or image.positions.by_group
    )


def begin(delta: OpenImage, record: BeginImportRecord) -> None:
    """Begin an import: remove the feature levels of formatting.

    Raises:
        ReplayError: An import was begun before, or there is other content.
    """
    if delta.source is not None:
        raise ReplayError(f"an import of {delta.source.cluster_id!r} was begun before")
    if not is_blank(delta.view()):
        raise ReplayError("an import begins in a cluster that is not empty")
    features = delta.open_features()
    for name in sorted(features.levels):
        features.replay_level(FeatureLevelRecord(name, 0))
    features.replay_migration(ZkMigrationStateRecord(0))
    position = SourcePosition(not record.is_in_checkpoint, record.next_offset)
    delta.set_source(ImportState(record.source_cluster_id, record.checkpoint_offset, position))


def restate(delta: OpenImage, record: ImportStateRecord) -> None:
    """Set an import's full progress: when it ends, or from a checkpoint.

    Raises:
        ReplayError: The progress would go back, or belongs to another source.
    """
    new = ImportState(
        record.source_cluster_id,
        record.checkpoint_offset,
        SourcePosition(not record.is_in_checkpoint, record.next_offset),
        record.is_finished,
        record.broker_epoch_max,
    )
    old = delta.source
    if old is not None and (
        (old.cluster_id, old.checkpoint_offset) != (new.cluster_id, new.checkpoint_offset)
        or old.position > new.position
        or old.is_finished
    ):
        raise ReplayError(f"import state {new} after {old}")
    delta.set_source(new)
    delta.tracker.stored(IMPORT_KEY, record.extra, existed=old is not None)


def after_batch(state: ImportState, headers: Sequence[tuple[str, bytes | None]]) -> ImportState:
    """Return the progress after a batch; only an imported batch's headers change it.

    Raises:
        ReplayError: The batch does not begin at the import's position, or goes back.
    """
    found = dict(headers)
    if HEADER_SOURCE_OFFSET not in found:
        return state
    try:
        start, end = (
            position_of((found.get(name) or b"").decode())
            for name in (HEADER_SOURCE_OFFSET, HEADER_SOURCE_NEXT)
        )
    except ValueError as error:
        raise ReplayError(f"header of an imported batch: {error}") from error
    if start != state.position or end < start:
        raise ReplayError(
            f"imported batch {start.text()} to {end.text()} at {state.position.text()}"
        )
    return replace(state, position=end)


def state_record(state: ImportState) -> ImportStateRecord:
    """Return the progress as a record; the reverse of ``restate``."""
    return ImportStateRecord(
        state.cluster_id,
        state.checkpoint_offset,
        not state.position.is_in_log,
        state.position.offset,
        state.is_finished,
        state.broker_epoch_max,
    )
