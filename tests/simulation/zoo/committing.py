"""Broken replicas that report uncommitted records as committed."""

from __future__ import annotations

from quorate.controller import group
from quorum.core.contract.events import WatermarkMoved
from quorum.core.contract.output import HighWatermarkAdvanced
from quorum.core.following import fetching
from quorum.core.positions.epoch_history import EpochHistory
from quorum.core.replication import commitment
from quorum.core.state.core_state import CoreState
from simulation.options import Options
from statemachine.producers import Fresh
from tests.simulation.zoo.bug import Bug, Patch


def old_epoch_by_counting(patch: Patch) -> None:
    """A leader commits records of earlier epochs as soon as a majority has them."""
    patch.setattr(commitment, "may_commit", lambda leader, end_offset: True)


def watermark_beyond_log(patch: Patch) -> None:
    """A follower adopts the leader's high watermark beyond the end of its own log."""

    def raise_high_watermark(core: CoreState, high_watermark: int) -> bool:
        before = core.high_watermark
        if high_watermark <= before:
            return False
        core.high_watermark = high_watermark
        core.progress(HighWatermarkAdvanced(high_watermark))
        core.event(WatermarkMoved(before, high_watermark))
        return True

    patch.setattr(fetching, "follower_high_watermark", lambda log, high_watermark: high_watermark)
    patch.setattr(CoreState, "raise_high_watermark", raise_high_watermark)


def duplicates_not_recognised(patch: Patch) -> None:
    """A repeated command is treated as a new one."""
    patch.setattr(group, "check_sequence", lambda *arguments, **options: Fresh())


def epoch_forgotten_at_log_start(patch: Patch) -> None:
    """A log that is trimmed to its end forgets the epoch at its start.

    A consumer that looks that epoch up is told that it ended earlier, and goes back.
    """
    patch.setattr(EpochHistory, "is_empty", property(lambda history: False))


BUGS = (
    Bug("old-epoch-by-counting", old_epoch_by_counting, ("committed-on-majority",), "Raft 5.4.2"),
    Bug(
        "watermark-beyond-own-log",
        watermark_beyond_log,
        ("bounds", "committed-stays"),
        "PySyncObj #197",
    ),
    Bug(
        "duplicates-not-recognised",
        duplicates_not_recognised,
        ("acknowledged-survives", "no-crash", "processed-once"),
        "requirements 360",
    ),
    Bug(
        "epoch-forgotten-at-log-start",
        epoch_forgotten_at_log_start,
        ("history", "log-consumers"),
        "found by the simulation, seed 40",
        options=Options("clocks"),
    ),
)
