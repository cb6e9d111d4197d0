"""Broken recoveries: two histories of one cluster are mixed."""

from __future__ import annotations

from dataclasses import replace

from quorum.core.following import snapshot_install
from quorum.core.messages.received_records import VotersAt
from quorum.core.state.core_state import CoreState
from quorum.incarnation import FIRST_INCARNATION
from quorum.transport import hello
from quorum.types import SnapshotId
from tests.simulation.experiments.recovered_cluster import RECOVERED_CLUSTER
from tests.simulation.zoo.bug import Bug, Patch


def former_voters_are_met(patch: Patch) -> None:
    """A node talks to peers of another incarnation of the log."""
    patch.setattr(hello, "is_other_log", lambda ours, theirs: False)


def incarnation_forgotten_at_snapshot_install(patch: Patch) -> None:
    """A replica that installs a checkpoint forgets the incarnation of the log."""
    replace_log = snapshot_install.replace_log

    def replace_and_forget(
        core: CoreState, snapshot_id: SnapshotId, voters: tuple[VotersAt, ...]
    ) -> None:
        forgotten = tuple(replace(each, incarnation=FIRST_INCARNATION) for each in voters)
        replace_log(core, snapshot_id, forgotten)

    patch.setattr(snapshot_install, "replace_log", replace_and_forget)


BUGS = (
    Bug(
        "former-voters-are-met",
        former_voters_are_met,
        ("incarnations", "liveness"),
        "ADR 65; etcd: a member of before --force-new-cluster comes back",
        experiment=RECOVERED_CLUSTER,
    ),
    Bug(
        "incarnation-forgotten-at-snapshot-install",
        incarnation_forgotten_at_snapshot_install,
        ("incarnations",),
        "ADR 65: the incarnation is part of the voter set, also in checkpoints",
        experiment=RECOVERED_CLUSTER,
    ),
)
