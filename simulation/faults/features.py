"""Operators who change feature levels during all other faults (KIP-584)."""

from __future__ import annotations

from quorate.controller.requests import Answer, RequestContext
from simulation.faults.site import Site
from statemachine.commands import FeatureUpdate, UpdateFeatures, UpgradeType
from statemachine.feature_levels import supported_range
from statemachine.records import METADATA_VERSION


def change_level(site: Site) -> bool:
    """Ask the leader for another level of metadata.version: the newest, or the one before it."""
    leader = site.leader()
    if leader is None:
        return False
    newest = supported_range(METADATA_VERSION)[1]
    level = site.rng.choice((newest - 1, newest))
    update = FeatureUpdate(METADATA_VERSION, level, UpgradeType.UNSAFE_DOWNGRADE)

    def answered(_answer: Answer) -> None:
        """Do nothing: the outcome shows in the log."""

    leader.serve(
        f"feature {level}",
        lambda replica: replica.controller.submit(
            UpdateFeatures((update,)), RequestContext(), answered
        ),
    )
    return True
