"""Broken replicas with incomplete checkpoints, or with wrong rules for them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from quorate.controller.controller import Controller
from quorate.replica import boot, checkpoints
from quorate.replica.checkpoints import CheckpointManager
from quorum import control
from quorum.core.following import snapshot_install
from quorum.core.messages.received_records import VotersAt
from quorum.core.replication import trimming
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Leader
from quorum.types import OffsetAndEpoch, SnapshotId
from simulation.options import Options
from statemachine import dump
from statemachine.codec import decode_record
from statemachine.image import MetadataImage
from statemachine.loading import _Loader
from statemachine.records import (
    BrokerEpochRecord,
    MetadataRecord,
    ProducerIdsRecord,
    ProducerStateRecord,
)
from tests.simulation.zoo.bug import Bug, Patch


def _leaving_out(patch: Patch, kind: type[MetadataRecord]) -> None:
    behind_topics = dump._behind_topics

    def without(image: MetadataImage) -> Iterator[MetadataRecord]:
        for record in behind_topics(image):
            if not isinstance(record, kind):
                yield record

    patch.setattr(dump, "_behind_topics", without)


def dedupe_table_not_in_checkpoints(patch: Patch) -> None:
    """Checkpoints do not contain the stored answers of producers."""
    _leaving_out(patch, ProducerStateRecord)


def broker_epoch_not_in_kafka_checkpoints(patch: Patch) -> None:
    """Checkpoints in Kafka's codec lack the highest broker epoch; no digest of one is checked."""
    dump_values = dump.dump_values

    def without(image: MetadataImage, *, kafka: bool = False) -> Iterator[bytes]:
        for value in dump_values(image, kafka=kafka):
            if not kafka or type(decode_record(value)) is not BrokerEpochRecord:
                yield value

    patch.setattr(dump, "dump_values", without)
    patch.setattr(_Loader, "_check_digest", lambda loader, image, promised: None)


def next_producer_id_not_in_checkpoints(patch: Patch) -> None:
    """Checkpoints do not contain the next producer id."""
    _leaving_out(patch, ProducerIdsRecord)


def uncommitted_records_in_checkpoints(patch: Patch) -> None:
    """A leader's checkpoint contains uncommitted records."""
    write_now = CheckpointManager.write_now

    def write_ahead(manager: CheckpointManager) -> SnapshotId | None:
        groups = manager._controller._uncommitted_image.groups
        if not groups:
            return write_now(manager)
        ahead = groups[-1].image
        digested = checkpoints.DigestedValues

        def values(image: MetadataImage, *, kafka: bool) -> object:
            return digested(ahead.at(image.provenance), kafka=kafka)

        try:
            checkpoints.DigestedValues = values  # type: ignore[assignment, misc]
            return write_now(manager)
        finally:
            checkpoints.DigestedValues = digested  # type: ignore[misc]

    patch.setattr(CheckpointManager, "write_now", write_ahead)


def trimmed_beyond_the_checkpoint(patch: Patch) -> None:
    """A leader trims its log to the high watermark, with or without a checkpoint of it."""

    def trim_target(core: CoreState, leader: Leader) -> SnapshotId | None:
        end = core.high_watermark
        if core.snapshots.latest is None or end <= core.log.start.offset:
            return None
        return OffsetAndEpoch(end, core.log.epochs.epoch_before(end))

    patch.setattr(trimming, "trim_target", trim_target)


def silent_observers_passed_over(patch: Patch) -> None:
    """A new leader trims its log by the replicas that have fetched, and ignores all others."""
    needed_from = trimming._needed_from

    def by_replicas_that_fetched(core: CoreState, leader: Leader) -> int:
        patient, leader.since_ms = leader.since_ms, -core.config.observer_session_ms - 1
        try:
            return needed_from(core, leader)
        finally:
            leader.since_ms = patient

    patch.setattr(trimming, "_needed_from", by_replicas_that_fetched)


def checkpoint_moves_only_the_position(patch: Patch) -> None:
    """Installing a checkpoint moves the image's position, but leaves its content unchanged.

    What follows the checkpoint then often does not fit the image: a batch of a producer that it
    does not know stops the replay, which is ``no-crash``, before anybody compares images.
    """
    on_snapshot = Controller.on_snapshot

    def move(controller: Controller, snapshot_id: SnapshotId) -> None:
        before = controller.image
        on_snapshot(controller, snapshot_id)
        if before.provenance.end_offset:
            controller._machine.image = before.at(controller.image.provenance)

    patch.setattr(Controller, "on_snapshot", move)


def voters_kept_at_snapshot_install(patch: Patch) -> None:
    """A replica that installs a checkpoint keeps its previous voter set."""
    replace_log = snapshot_install.replace_log

    def replace_and_keep(
        core: CoreState, snapshot_id: SnapshotId, voters: tuple[VotersAt, ...]
    ) -> None:
        kept = VotersAt(snapshot_id.offset - 1, core.voters.latest.voters)
        replace_log(core, snapshot_id, (kept,) if voters else ())

    patch.setattr(snapshot_install, "replace_log", replace_and_keep)


def removed_voters_forgotten_at_snapshot_install(patch: Patch) -> None:
    """A replica that installs a checkpoint forgets the tombstones of removed voters."""
    replace_log = snapshot_install.replace_log

    def replace_and_forget(
        core: CoreState, snapshot_id: SnapshotId, voters: tuple[VotersAt, ...]
    ) -> None:
        replace_log(core, snapshot_id, tuple(replace(each, removed=()) for each in voters))

    patch.setattr(snapshot_install, "replace_log", replace_and_forget)


def checkpoint_believed_by_its_name(patch: Patch) -> None:
    """The position of a checkpoint is taken from its name; header and log are not compared."""
    decode = control._DECODERS[control.SNAPSHOT_HEADER][1]

    def decode_without_end(value: bytes, version: int) -> object:
        return replace(decode(value, version), end=None)

    decoders = {**control._DECODERS, control.SNAPSHOT_HEADER: (0, decode_without_end)}
    patch.setattr(control, "_DECODERS", decoders)
    patch.setattr(boot, "contradiction", lambda snapshot_id, head, log: "")


BUGS = (
    Bug(
        "checkpoint-believed-by-its-name",
        checkpoint_believed_by_its_name,
        (
            "equal-images",
            "same-history",
            "dedupe-table",
            "no-crash",
            "history",
            "equal-checkpoints",
        ),
        "ADR 40; found from outside: attack 7",
        options=Options("files"),
    ),
    Bug(
        "dedupe-table-not-in-checkpoints",
        dedupe_table_not_in_checkpoints,
        ("no-crash", "dedupe-table", "equal-images", "equal-checkpoints"),
        "Raft dissertation 6.3: sessions belong to the state",
    ),
    Bug(
        "broker-epoch-not-in-kafka-checkpoints",
        broker_epoch_not_in_kafka_checkpoints,
        ("equal-images", "equal-checkpoints", "broker-epochs"),
        "this project: images differed after the broker of the highest epoch was unregistered",
        seeds=400,
    ),
    Bug(
        "next-producer-id-not-in-checkpoints",
        next_producer_id_not_in_checkpoints,
        ("no-crash", "unique-ids", "equal-images"),
        "KIP-730: a block of producer ids handed out twice after failover",
    ),
    Bug(
        "uncommitted-records-in-checkpoints",
        uncommitted_records_in_checkpoints,
        ("equal-checkpoints", "equal-images", "dedupe-table", "no-crash"),
        "KIP-630: snapshots hold committed records only",
        seeds=1_000,
    ),
    Bug(
        "silent-observers-passed-over",
        silent_observers_passed_over,
        ("trim-waits", "subtree-reported"),
        "requirement 630.5: every live replica counts",
        options=Options("network", observers=(3,)),
    ),
    Bug(
        "trimmed-beyond-the-checkpoint",
        trimmed_beyond_the_checkpoint,
        ("log-start-covered", "no-crash"),
        "KIP-630; requirement 630.14",
    ),
    Bug(
        "checkpoint-moves-only-the-position",
        checkpoint_moves_only_the_position,
        ("equal-images", "dedupe-table", "equal-checkpoints", "no-crash"),
        "Raft 7, InstallSnapshot step 8: reset the state machine",
    ),
    Bug(
        "voters-kept-at-snapshot-install",
        voters_kept_at_snapshot_install,
        ("one-leader", "committed-on-majority", "tombstones", "one-change-at-a-time"),
        "openraft #1808",
        seeds=1_000,
        options=Options("membership"),
    ),
    Bug(
        "removed-voters-forgotten-at-snapshot-install",
        removed_voters_forgotten_at_snapshot_install,
        ("tombstones",),
        "KAFKA-19850",
        seeds=1_000,
        options=Options("membership"),
    ),
)
