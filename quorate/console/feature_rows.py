"""Feature levels, how far each can be raised, and who keeps it from going higher."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from quorate.client.results.admin import DescribeFeaturesResponse
from statemachine.feature_levels import KRAFT_VERSION
from statemachine.image import MetadataImage
from statemachine.records import SupportedFeature


def feature_rows(
    image: MetadataImage, answer: DescribeFeaturesResponse | None
) -> list[dict[str, Any]]:
    """Return one row per feature, by name.

    The rules are those of an upgrade (KIP-584): every registered broker and controller must support
    a level, fenced ones too. A member that does not name a feature supports level 0 of it only.
    What voters support is not known here; the upgrade asks them.
    """
    members = [
        *(
            (f"broker {each.id}", each.fenced, each.features)
            for _, each in sorted(image.brokers.items())
        ),
        *(
            (f"controller {each.id}", False, each.features)
            for _, each in sorted(image.controllers.items())
        ),
    ]
    known = {each.name: each for each in answer.features} if answer is not None else {}
    rows = []
    for name in sorted({*image.features.levels, *known}):
        level = known[name].finalized_level if name in known else image.features.level(name)
        most = known[name].supported_max if name in known else level
        with_voters = name == KRAFT_VERSION
        blocked = [] if with_voters else [
            {"who": who, "is_fenced": fenced, "max_level": _most(features, name)}
            for who, fenced, features in members
            if most > level and not _supports(features, name, most)
        ]  # fmt: skip
        can_rise_to = max(
            (
                each
                for each in range(level + 1, most + 1)
                if not with_voters and all(_supports(of, name, each) for _, _, of in members)
            ),
            default=level,
        )
        rows.append(
            {
                "name": name,
                "level": level,
                "supported_max": most,
                "can_rise": can_rise_to > level,
                "can_rise_to": can_rise_to,
                "changes_with_voters": with_voters,
                "blocked_by": blocked,
            }
        )
    return rows


def _supports(features: Sequence[SupportedFeature], name: str, level: int) -> bool:
    for each in features:
        if each.name == name:
            return each.min_supported_version <= level <= each.max_supported_version
    return level == 0


def _most(features: Sequence[SupportedFeature], name: str) -> int:
    return next((each.max_supported_version for each in features if each.name == name), 0)
