"""Finalise feature levels: upgrades, and downgrades that report what they would lose (KIP-584)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import MappingProxyType

from quorum.errors import CommandError, ErrorCode
from quorum.types import NodeId, VersionRange
from statemachine.commands import FeatureUpdate, ResourceType, UpdateFeatures, UpgradeType
from statemachine.config_catalog import MIN_INSYNC_REPLICAS
from statemachine.dump import dump_records
from statemachine.feature_levels import KRAFT_VERSION, RELEASES, supported_range
from statemachine.image import MetadataImage
from statemachine.prepare.context import EvaluationContext, Prepared
from statemachine.prepare.view import View, registered_brokers
from statemachine.records import (
    ELR_VERSION,
    METADATA_VERSION,
    OWN_API_KEY_MIN,
    ClearElrRecord,
    ConfigRecord,
    FeatureLevelRecord,
    MetadataRecord,
    SupportedFeature,
    record_version,
)

SUPPORTED_FEATURES: Mapping[str, tuple[int, int]] = MappingProxyType(
    {name: supported_range(name) for name in RELEASES if name != KRAFT_VERSION}
)
"""Levels of each feature that this release supports, both ends inclusive."""

FEATURES_PER_COMMAND_MAX = 100
_BLOCKERS_SHOWN_MAX = 5


def prepare_update_features(
    view: View, command: UpdateFeatures, context: EvaluationContext
) -> Prepared:
    """Return one record per level that changes; all take effect or none.

    Raises:
        CommandError: INVALID_REQUEST; INVALID_UPDATE_VERSION for a level that this node, a
            voter, a registered broker or a controller does not support, and for a lower level
            without a downgrade; FEATURE_UPDATE_FAILED for a safe downgrade that would lose data.
    """
    updates = command.updates
    if not updates or len(updates) > FEATURES_PER_COMMAND_MAX:
        raise CommandError(
            ErrorCode.INVALID_REQUEST,
            f"{len(updates)} feature updates are not within 1 to {FEATURES_PER_COMMAND_MAX}",
        )
    if len({update.name for update in updates}) != len(updates):
        raise CommandError(ErrorCode.INVALID_REQUEST, "a feature is named more than once")
    records: list[MetadataRecord] = []
    answers: list[dict[str, object]] = []
    for update in updates:
        old = view.features.level(update.name)
        _check_update(view, update, old, context)
        if update.level != old:
            records.extend(_consequences(view, update))
            records.append(FeatureLevelRecord(update.name, update.level))
        answers.append({"name": update.name, "level": update.level})
    return Prepared(records, {"features": answers})


def _check_update(view: View, update: FeatureUpdate, old: int, context: EvaluationContext) -> None:
    if update.name == KRAFT_VERSION:
        raise CommandError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{KRAFT_VERSION} belongs to the quorum and changes with its voters",
        )
    supported = SUPPORTED_FEATURES.get(update.name)
    if supported is None:
        raise CommandError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"unknown feature {update.name[:100]!r}; known are "
            f"{', '.join(sorted(SUPPORTED_FEATURES))}",
        )
    low, high = supported
    if not low <= update.level <= high:
        raise CommandError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{update.name} level {update.level} is not within {low} to {high}",
        )
    if update.upgrade_type not in tuple(UpgradeType):
        raise CommandError(ErrorCode.INVALID_REQUEST, f"unknown upgrade type {update.upgrade_type}")
    lacking = _lacking_nodes(view, update)
    lacking += _lacking_voters(context.voter_versions(), update, old)
    _refuse_lacking(update, lacking)
    if update.level >= old:
        return
    if update.upgrade_type == UpgradeType.UPGRADE:
        raise CommandError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{update.name} is at level {old}; going down to {update.level} must be requested "
            "as a downgrade",
        )
    if update.upgrade_type == UpgradeType.SAFE_DOWNGRADE and update.name == METADATA_VERSION:
        _check_lossless(view, update.level)


def _lacking_nodes(view: View, update: FeatureUpdate) -> list[str]:
    """Return the nodes that do not support the level. Fenced ones count: they may come back."""
    lacking = [
        f"broker {broker.id}{' (fenced; unregister it if it is gone)' if broker.fenced else ''}"
        for broker in registered_brokers(view)
        if not _supports(broker.features, update)
    ]
    controllers = view.cluster.controllers
    lacking.extend(
        f"controller {controller_id}"
        for controller_id in sorted(controllers)
        if not _supports(controllers[controller_id].features, update)
    )
    return lacking


def _lacking_voters(
    versions: Mapping[NodeId, Sequence[VersionRange] | None], update: FeatureUpdate, old: int
) -> list[str]:
    """Return the voters that do not support the level: they could neither apply it nor lead.

    A voter with unknown versions may run an old release, so it blocks a rising level only.
    """
    lacking = []
    for node_id, supported in sorted(versions.items()):
        if supported is None:
            if update.level > old:
                lacking.append(
                    f"voter {node_id} (versions unknown; start it, or remove it if it is gone)"
                )
            continue
        known = next((each for each in supported if each.name == update.name), None)
        if update.level and (known is None or not known.lowest <= update.level <= known.highest):
            can = f"{known.lowest} to {known.highest}" if known else "no level of it"
            lacking.append(f"voter {node_id} (it supports {can})")
    return lacking


def _refuse_lacking(update: FeatureUpdate, lacking: list[str]) -> None:
    if lacking:
        shown = ", ".join(lacking[:_BLOCKERS_SHOWN_MAX])
        more = len(lacking) - _BLOCKERS_SHOWN_MAX
        raise CommandError(
            ErrorCode.INVALID_UPDATE_VERSION,
            f"{update.name} level {update.level} is not supported by {shown}"
            + (f" and {more} more" if more > 0 else ""),
        )


def _supports(features: tuple[SupportedFeature, ...], update: FeatureUpdate) -> bool:
    for feature in features:
        if feature.name == update.name:
            return feature.min_supported_version <= update.level <= feature.max_supported_version
    return update.level == 0


def _check_lossless(view: View, level: int) -> None:
    """Refuse a level whose record versions cannot carry the image's content."""
    image = view if isinstance(view, MetadataImage) else view.view()
    written: dict[type[MetadataRecord], int] = {}
    blockers: Counter[str] = Counter()
    for record in dump_records(image):
        kind = type(record)
        if kind.API_KEY >= OWN_API_KEY_MIN:
            # The versions of our own records do not depend on Kafka's levels.
            continue
        if kind not in written:
            written[kind] = record_version(kind(), level)
        if record_version(record, level) > written[kind]:
            blockers[kind.__name__] += 1
    if blockers:
        listed = ", ".join(f"{count} {name}" for name, count in sorted(blockers.items()))
        raise CommandError(
            ErrorCode.FEATURE_UPDATE_FAILED,
            f"{METADATA_VERSION} level {level} cannot hold fields of: {listed}",
        )


def _consequences(view: View, update: FeatureUpdate) -> list[MetadataRecord]:
    """Return the records that must precede a level change, so that all replicas agree."""
    if update.name != ELR_VERSION:
        return []
    if update.level == 0:
        return [ClearElrRecord("")]
    broker = int(ResourceType.BROKER)
    if view.configs.value(broker, "", MIN_INSYNC_REPLICAS) is not None:
        return []
    # ELR depends on this default, so every replica must read it from the log.
    return [ConfigRecord(broker, "", MIN_INSYNC_REPLICAS, "1")]
