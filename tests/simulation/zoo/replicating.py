"""Broken replicas that accept, count or cut records wrongly."""

from __future__ import annotations

from quorum.core.contract.output import LogTruncated, Truncate
from quorum.core.following import fetching
from quorum.core.positions.fetch_classification import SERVE, Classification
from quorum.core.positions.log_view import LogView
from quorum.core.replication import commitment, fetch_serving
from quorum.core.state.core_state import CoreState
from quorum.core.state.roles import Leader
from quorum.types import Epoch, OffsetAndEpoch, SnapshotId
from tests.simulation.zoo.bug import Bug, Patch


def last_epoch_not_compared(patch: Patch) -> None:
    """A leader serves a replica by offset alone and does not compare the last epoch."""
    classify_fetch = fetch_serving.classify_fetch

    def by_offset(
        log: LogView, latest: SnapshotId | None, offset: int, last_fetched_epoch: Epoch
    ) -> Classification:
        if log.start.offset < offset <= log.end_offset:
            return SERVE
        return classify_fetch(log, latest, offset, last_fetched_epoch)

    patch.setattr(fetch_serving, "classify_fetch", by_offset)
    patch.setattr(fetch_serving, "is_same_history", lambda core, progress, request: True)


def observers_count(patch: Patch) -> None:
    """A leader commits what a majority of all replicas has, observers included."""
    voter_ends = commitment.voter_ends

    def all_ends(core: CoreState, leader: Leader) -> list[int]:
        observers = [progress.end_offset for progress in leader.observers.values()]
        return voter_ends(core, leader) + observers

    patch.setattr(commitment, "voter_ends", all_ends)


def own_unflushed_end_counts(patch: Patch) -> None:
    """A leader counts its own records before they are on its disk."""

    def voter_ends(core: CoreState, leader: Leader) -> list[int]:
        ends = [progress.end_offset for progress in leader.remote.values()]
        return [*ends, core.log.end_offset]

    patch.setattr(commitment, "voter_ends", voter_ends)


def cut_to_the_high_watermark(patch: Patch) -> None:
    """A follower truncates a diverging log to its high watermark, not to the common prefix."""

    def resolve(core: CoreState, flight: object, point: OffsetAndEpoch) -> None:
        del flight, point
        end_offset = core.high_watermark
        if end_offset < core.log.end_offset:
            cut(core, end_offset)

    patch.setattr(fetching, "_resolve_divergence", resolve)
    patch.setattr(fetching, "_problem_with_divergence", lambda core, point: "")


def cut(core: CoreState, end_offset: int) -> None:
    """What a follower does to cut its log."""
    core.log.truncate_to(end_offset, core.effect(Truncate(end_offset)))
    core.progress(LogTruncated(end_offset))
    if core.voters.truncate_to(end_offset):
        core.voters_changed()


def divergence_keeps_too_much(patch: Patch) -> None:
    """A follower truncates to the end of the leader's epoch, even if its own ended earlier."""

    def by_leaders_end(log: LogView, leader_reported: OffsetAndEpoch) -> int:
        return min(leader_reported.offset, log.end_offset)

    patch.setattr(fetching, "truncation_point", by_leaders_end)


BUGS = (
    Bug(
        "last-epoch-not-compared",
        last_epoch_not_compared,
        ("log-matching", "same-history", "committed-on-majority", "committed-stays", "no-crash"),
        "Raft 5.3, consistency check; KIP-595",
    ),
    Bug("observers-count", observers_count, ("committed-on-majority",), "KIP-595: voters only"),
    Bug(
        "own-unflushed-end-counts",
        own_unflushed_end_counts,
        ("committed-on-majority",),
        "Raft dissertation 10.2.1",
    ),
    Bug(
        "cut-to-the-high-watermark",
        cut_to_the_high_watermark,
        ("committed-on-majority", "committed-stays", "leader-completeness", "liveness"),
        "KAFKA-1211; KIP-101",
        seeds=1_000,
    ),
    Bug(
        "divergence-keeps-too-much",
        divergence_keeps_too_much,
        ("lineage-cuts",),
        "KIP-279",
        scenario="divergence/279_scenario_3.scn",
    ),
)
